//===- CheckPrecision.cpp - a unit's precision and the step's -------------===//
//
// [Note: precision]
// In which type a step computes is decided when it is captured: its graph has the casts (capture/casts.py). What a
// unit's options say of `param` is checked against them, so that no plan promises what its program does not do.
// `reduce` is obeyed here (Gradients.cpp); `buffer` and `output` concern no collective.
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

static LogicalResult checkUnit(const Unit &unit) {
  ShardUnitOp op = unit.op;
  DictionaryAttr precision = op.getPrecisionAttr();
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
