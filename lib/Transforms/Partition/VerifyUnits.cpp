//===- VerifyUnits.cpp - what belongs to a shard unit stays with it -------===//
//
// [Note: homes]
// A rank's chunk of a flat buffer, the whole buffer and a table of one entry per segment mean nothing without the unit
// whose layout they have; two units may well have chunks of one size. So every such value has a home: arguments have
// that of their role, what a unit's collective, pack or list op gives has that of the unit, and pointwise arithmetic
// keeps it. Nothing may mix two of them, gather or reduce one as another's, or return one as another's state.
//
// Numbers in comments are those of the description of spmd-verify-partition.
//
//===----------------------------------------------------------------------===//

#include "States.h"
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::partition;

namespace {

class UnitVerifier {
public:
  explicit UnitVerifier(func::FuncOp step) : step(step) {}
  LogicalResult run();

private:
  InFlightDiagnostic error(Operation *op) {
    return op->emitError() << "'" << op->getName() << "' (" << describeSource(op->getLoc()) << ") ";
  }
  LogicalResult takeArguments();
  LogicalResult visit(Operation *op);
  LogicalResult visitCollective(CollectiveOpInterface op);
  LogicalResult visitPack(PackOp pack);
  /// A sum across the axes along which chunks are the same.
  bool isAcross(CollectiveOpInterface op, ShardUnitOp unit) const;
  /// Its gradients outlive the step as sums across.
  bool keepsSums(FlatSymbolRefAttr unit);
  /// A gather of the pieces that a group of ranks keeps of what was gathered before.
  bool isWithinGroup(CollectiveOpInterface op, ShardUnitOp unit) const;
  LogicalResult verifyReturn(Operation *terminator);
  bool isForwardOrBackward(Operation *op) const {
    std::optional<StepPhase> phase = getPhase(op);
    return phase == StepPhase::forward || phase == StepPhase::backward;
  }
  /// All operands that have a home have this one.
  LogicalResult expectHome(Operation *op, FlatSymbolRefAttr unit);
  void setHome(ValueRange values, FlatSymbolRefAttr unit) {
    for (Value value : values)
      homes[value] = unit;
  }
  FlatSymbolRefAttr getHome(Value value) const { return homes.lookup(value); }

  func::FuncOp step;
  llvm::DenseMap<Value, FlatSymbolRefAttr> homes;
  llvm::StringMap<PackOp> reduced; ///< by parameter
};

bool isUnreduced(Value value) {
  std::optional<AxisState> state = getState(value.getType());
  return state && (state->isPartial() || state->isVarying());
}

} // namespace

/// 10: a rank keeps its chunk, whole; parameters in the unit's type.
LogicalResult UnitVerifier::takeArguments() {
  for (BlockArgument argument : step.getArguments()) {
    Attribute role = getArgRole(step, argument.getArgNumber());
    if (auto table = dyn_cast_or_null<TableAttr>(role))
      homes[argument] = table.getUnit();
    auto shard = dyn_cast_or_null<ShardAttr>(role);
    if (!shard)
      continue;
    homes[argument] = shard.getUnit();
    auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(step, shard.getUnit());
    if (!unit)
      return step.emitError() << "argument " << argument.getArgNumber() << " of @step is of unit " << shard.getUnit()
                              << ", which does not exist";
    auto type = typeOf(argument);
    bool isParam = shard.getState() == "param";
    RankedTensorType expected = isParam && unit.hasWholeParameters() ? unit.getFlatType() : unit.getChunkType();
    if (type.getShape() != expected.getShape() || (isParam && type.getElementType() != expected.getElementType()))
      return step.emitError() << "argument " << argument.getArgNumber() << " of @step, " << role << ", has type "
                              << type << ", expected " << expected;
  }
  return success();
}

LogicalResult UnitVerifier::expectHome(Operation *op, FlatSymbolRefAttr unit) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (FlatSymbolRefAttr home = getHome(operand); home && home != unit)
      return error(op) << "of unit " << unit << " has operand " << index << " of unit " << home;
  return success();
}

/// The collective that gives the value, itself or by its wait.
static CollectiveOpInterface getSender(Value value) {
  auto wait = value.getDefiningOp<WaitOp>();
  return dyn_cast_or_null<CollectiveOpInterface>(wait ? wait.getHandle().getDefiningOp() : value.getDefiningOp());
}

bool UnitVerifier::isAcross(CollectiveOpInterface op, ShardUnitOp unit) const {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
  if (!mesh || !unit.isSharded() || op.getCollectiveKind() != CollectiveKind::AllReduce)
    return false;
  SmallVector<Attribute> axes(op.getAxesAttr().getValue());
  llvm::append_range(axes, unit.getAxes());
  return axes == mesh.getDataAxes().getValue() && op.getAxesAttr() != unit.getAxesAttr();
}

bool UnitVerifier::keepsSums(FlatSymbolRefAttr unit) {
  return llvm::any_of(step.getArguments(), [&](BlockArgument argument) {
    auto role = getArgRole<ShardAttr>(step, argument.getArgNumber());
    std::optional<AxisState> state = getState(argument.getType());
    return role && role.getUnit() == unit && state && state->outer == AxisState::Outer::partial;
  });
}

bool UnitVerifier::isWithinGroup(CollectiveOpInterface op, ShardUnitOp unit) const {
  // That the slice is of all that the gather gives is in the states.
  auto piece = op->getOperand(0).getDefiningOp<SliceOp>();
  bool isGather = op.getCollectiveKind() == CollectiveKind::AllGather;
  return isGather && unit.getReshardGroup() && piece && piece.getAxesAttr() == op.getAxesAttr();
}

/// 7 and 10
LogicalResult UnitVerifier::visitCollective(CollectiveOpInterface op) {
  FlatSymbolRefAttr name = op.getUnitAttr();
  if (!name) {
    // A table of norms stays its unit's.
    for (auto [operand, result] : llvm::zip(op->getOperands(), getReceived(op)))
      if (FlatSymbolRefAttr home = getHome(operand))
        homes[result] = home;
    return success();
  }
  auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, name);
  if (!unit)
    return error(op) << "names unit " << name << ", which does not exist";
  bool across = isAcross(op, unit);
  if (op.getMeshAttr() != unit.getMeshAttr() ||
      (op.getAxesAttr() != unit.getAxesAttr() && !across && !isWithinGroup(op, unit)))
    return error(op) << "is on " << op.getMeshAttr() << " " << op.getAxesAttr() << ", unit " << name << " on "
                     << unit.getMeshAttr() << " " << unit.getAxesAttr();
  Value operand = op->getOperand(0);
  FlatSymbolRefAttr home = getHome(operand);
  if (home != name)
    return error(op) << "of unit " << name << " takes a value of "
                     << (home ? "unit @" + home.getValue().str() : "no unit");
  // A step may read any state there, but hardly ever does; what is recorded says so for sure.
  bool isParameter = isForwardOrBackward(op) && !step->hasAttr(kRecordedValuesAttr);
  auto narrow = operand.getDefiningOp<aten::ToCopyOp>();
  if (auto argument = dyn_cast<BlockArgument>(narrow ? narrow.getSelf() : operand); argument && isParameter) {
    auto shard = getArgRole<ShardAttr>(step, argument.getArgNumber());
    if (!shard || shard.getState() != "param")
      return error(op) << "of unit " << name << " sends " << getArgRole(step, argument.getArgNumber())
                       << " where parameters are used";
  }
  if (across) {
    // 7: the sum of its ranks' gradients, which nobody else reads; or what was added up of them, as its state says.
    if (keepsSums(name))
      return setHome(getReceived(op), name), success();
    CollectiveOpInterface sender = getSender(operand);
    if (!sender || sender.getCollectiveKind() != CollectiveKind::ReduceScatter || !operand.hasOneUse())
      return error(op) << "of unit " << name << " adds up across " << op.getAxesAttr()
                       << " what is no sum of its gradients along " << unit.getAxes();
  } else if (combines(op.getCollectiveKind()) && !operand.getDefiningOp<PackOp>())
    return error(op) << "of unit " << name << " reduces what is no pack of its gradients";
  setHome(getReceived(op), name);
  return success();
}

/// 7: what ranks have parts of is reduced once, by the unit, before anything else reads it.
LogicalResult UnitVerifier::visitPack(PackOp pack) {
  homes[pack] = pack.getUnitAttr();
  if (!isUnreduced(pack))
    return success();
  for (Operation *user : pack->getUsers()) {
    auto collective = dyn_cast<CollectiveOpInterface>(user);
    if (!collective || !combines(collective.getCollectiveKind()) || collective.getUnitAttr() != pack.getUnitAttr())
      return error(user) << "uses the gradients of unit " << pack.getUnitAttr() << " before they are reduced";
  }
  if (!pack->use_empty() && !pack->hasOneUse()) {
    InFlightDiagnostic diag = error(pack) << "of unit " << pack.getUnitAttr() << " is reduced more than once";
    for (Operation *user : pack->getUsers())
      diag.attachNote(user->getLoc()) << "here";
    return diag;
  }
  for (auto name : pack.getNames().getAsRange<StringAttr>()) {
    auto [entry, first] = reduced.try_emplace(name.getValue(), pack);
    if (first)
      continue;
    InFlightDiagnostic diag = error(pack) << "reduces the gradient of " << name << " a second time";
    diag.attachNote(entry->second.getLoc()) << "the first time is here";
    return diag;
  }
  return success();
}

/// 11
LogicalResult UnitVerifier::visit(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return visitCollective(collective);
  if (auto pack = dyn_cast<PackOp>(op))
    return visitPack(pack);
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    if (!getHome(unpack.getFlat()))
      return error(op) << "takes parameters of unit " << unpack.getUnitAttr() << " from a value of no unit";
    return expectHome(op, unpack.getUnitAttr());
  }
  if (isa<SliceOp, MaskOp>(op)) {
    if (FlatSymbolRefAttr home = getHome(op->getOperand(0)))
      setHome(op->getResults(), home);
    return success();
  }
  if (auto unit = op->getAttrOfType<FlatSymbolRefAttr>("unit");
      unit && (isa<SegmentBroadcastOp, SegmentNormOp, aten::ListOpInterface>(op))) {
    setHome(op->getResults(), unit);
    return expectHome(op, unit);
  }
  auto iface = dyn_cast<aten::ScalarBodyOpInterface>(op);
  if (!iface || !iface.isPointwise())
    return success();
  FlatSymbolRefAttr home;
  Value first;
  for (Value operand : op->getOperands()) {
    FlatSymbolRefAttr other = getHome(operand);
    if (!other)
      continue;
    if (home && home != other)
      return error(op) << "mixes values of units " << home << " and " << other;
    home = other;
    first = operand;
  }
  for (Value result : op->getResults())
    if (home && getGlobalShape(result.getType()) == getGlobalShape(first.getType()))
      homes[result] = home;
  return success();
}

/// 12
LogicalResult UnitVerifier::verifyReturn(Operation *terminator) {
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, index));
    FlatSymbolRefAttr home = getHome(value), unit;
    if (!update)
      continue;
    if (auto shard = dyn_cast<ShardAttr>(update.getArg()))
      unit = shard.getUnit();
    else if (auto table = dyn_cast<TableAttr>(update.getArg()))
      unit = table.getUnit();
    Location loc = value.getDefiningOp() ? value.getLoc() : step.getLoc();
    if (home != unit && home)
      return emitError(loc) << "result " << index << " of @step, " << update << ", is a value of unit " << home;
  }
  return success();
}

LogicalResult UnitVerifier::run() {
  if (failed(takeArguments()))
    return failure();
  Block &body = step.getBody().front();
  for (Operation &op : body.without_terminator())
    if (failed(visit(&op)))
      return failure();
  return verifyReturn(body.getTerminator());
}

LogicalResult spmd::verifyUnits(func::FuncOp step) { return UnitVerifier(step).run(); }
