//===- CheckPrecision.cpp - a unit's precision and the step's -------------===//
//
// [Note: precision]
// In which type a step computes is decided when it is captured: its graph has the casts (capture/optimizer/casts.py). What a
// unit's options say of `param` is checked against them, so that no plan promises what its program does not do.
// `reduce` is obeyed here (Gradients.cpp); that there is a `master` is checked, too; `buffer` and `output` concern no
// collective. An optimizer's state may have other types than the parameters, those of a unit one for each kind: it is
// one buffer.
//
//===----------------------------------------------------------------------===//

#include "Step.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

static bool isOptimizer(Operation *op) { return getPhase(op) == StepPhase::optimizer; }

/// The first op of forward or backward that reads the parameter otherwise than through a cast to `type`; `isCast`: one
/// does cast it.
static Operation *findOtherReader(BlockArgument parameter, Type type, bool &isCast) {
  Operation *other = nullptr;
  for (Operation *reader : parameter.getUsers()) {
    auto cast = dyn_cast<aten::ToCopyOp>(reader);
    if (cast && cast.getDtype() == type)
      isCast = true;
    else if (!isOptimizer(reader) && !reader->hasTrait<OpTrait::IsTerminator>() &&
             (!other || reader->isBeforeInBlock(other)))
      other = reader;
  }
  return other;
}

/// The state of a kind that the segment has; null where it has none.
static BlockArgument findState(const Unit &unit, size_t segment, StringRef state) {
  for (const UnitArgument &argument : unit.arguments)
    if (argument.state == state && argument.members[segment])
      return argument.members[segment];
  return {};
}

/// Where masters are asked for, the optimizer has them of all narrower parameters that it trains.
static LogicalResult checkMasters(const Unit &unit, TypeAttr master) {
  Type own = unit.layout.getDtype();
  if (!master || !isa<FloatType>(own) || own.getIntOrFloatBitWidth() >= master.getValue().getIntOrFloatBitWidth())
    return success();
  for (auto [index, segment] : llvm::enumerate(unit.layout.getSegments()))
    if (segment.getTrainable() && segment.getGroup() >= 0 && !findState(unit, index, "master")) {
      ShardUnitOp op = unit.op;
      return emitError(op.getLoc()) << "shard unit @" << op.getSymName()
                                    << " has masters (master = " << master.getValue()
                                    << "), and the step was captured without one of '" << segment.getName() << "' ("
                                    << own << "); capture it with precision=, which spmd.capture and spmd.compile take";
    }
  return success();
}

/// The first segment that has the state, and its argument.
static std::pair<StringRef, BlockArgument> getFirst(const Unit &unit, const UnitArgument &argument) {
  const auto *found = llvm::find_if(argument.members, [](BlockArgument member) { return bool(member); });
  return {unit.layout.getSegments()[found - argument.members.begin()].getName(), *found};
}

/// The parameters of a unit have their state in one type.
static LogicalResult checkStates(const Unit &unit) {
  for (const UnitArgument &argument : unit.arguments)
    for (const UnitArgument &other : unit.arguments) {
      if (&other == &argument)
        break;
      if (other.state != argument.state || other.isTable != argument.isTable)
        continue;
      auto [name, member] = getFirst(unit, argument);
      auto [otherName, otherMember] = getFirst(unit, other);
      Operation *user = nullptr;
      for (Operation *reader : member.getUsers())
        if (!user || reader->isBeforeInBlock(user))
          user = reader;
      ShardUnitOp op = unit.op;
      return emitError(user ? user->getLoc() : member.getLoc())
             << "state '" << argument.state << "' of parameter '" << otherName << "' is " << other.dtype
             << ", that of '" << name << "' is " << argument.dtype << ", and both are of shard unit @"
             << op.getSymName() << ", which has one buffer for each kind of state; convert optimizer.state[p]['"
             << argument.state << "'] of one of them, or put them in units of their own (policy)";
    }
  return success();
}

static LogicalResult checkUnit(const Unit &unit) {
  if (failed(checkStates(unit)))
    return failure();
  ShardUnitOp op = unit.op;
  DictionaryAttr precision = op.getPrecisionAttr();
  if (precision && failed(checkMasters(unit, precision.getAs<TypeAttr>("master"))))
    return failure();
  auto param = precision ? precision.getAs<TypeAttr>("param") : TypeAttr();
  Type own = unit.layout.getDtype();
  if (!param || param.getValue() == own)
    return success();
  bool isCast = false;
  Operation *first = nullptr;
  StringRef name;
  for (const UnitArgument &argument : unit.arguments)
    if (argument.state == "param")
      for (auto [parameter, segment] : llvm::zip_equal(argument.members, unit.layout.getSegments()))
        if (Operation *reader = parameter ? findOtherReader(parameter, param.getValue(), isCast) : nullptr; reader && !first) {
          first = reader;
          name = segment.getName();
        }
  if (!first)
    return success();
  StringRef module = op.getModules().empty() ? "" : cast<StringAttr>(op.getModules()[0]).getValue();
  if (!isCast)
    return emitError(op.getLoc())
           << "shard unit '" << (module.empty() ? "(root)" : module) << "' (@" << op.getSymName()
           << ") has mixed precision (param = " << param.getValue() << "), and the step was captured in " << own << " ("
           << describeSource(first->getLoc()) << " reads '" << name
           << "' as it is); capture it with precision=, which spmd.capture and spmd.compile take";
  emitWarning(first->getLoc()) << "'" << name << "' is read in " << own << " here, so shard unit '"
                               << (module.empty() ? "(root)" : module) << "' is gathered in " << own << ", not in "
                               << param.getValue();
  return success();
}

LogicalResult Step::checkPrecision() const {
  for (const Unit &unit : units)
    if (failed(checkUnit(unit)))
      return failure();
  return success();
}

} // namespace spmd::partition
