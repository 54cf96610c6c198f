//===- Partitioner.cpp - visits the captured step -------------------------===//

#include "Partitioner.h"

#include "dialects/Spmd/Source.h"

using namespace mlir;
using spmd::aten::AtenOpInterface;

namespace spmd::partition {

Partitioner::Partitioner(Step &step)
    : step(step), domain(step), builder(step.func.getContext()), loc(step.func.getLoc()) {}

LogicalResult Partitioner::run() {
  findGradients();
  createFunction();
  Block &body = step.func.getBody().front();
  for (Operation &op : body.without_terminator())
    if (failed(emit(&op))) {
      newFunc.erase();
      return failure();
    }
  if (failed(emitReturn())) {
    newFunc.erase();
    return failure();
  }
  newFunc->moveBefore(step.func);
  step.func.erase();
  newFunc.setName("step");
  localizeSlices(newFunc);
  return success();
}

void Partitioner::tag(Operation *op) {
  if (segment)
    op->setAttr(kSegmentAttr, segment);
}

AxisState Partitioner::getState(Value value) const {
  if (isParameter(value) || parameterViews.contains(value))
    return AxisState::replicated();
  return states.lookup(value);
}

void Partitioner::setLocal(Value value, AxisState state, Value local) {
  states[value] = state;
  locals[value].push_back({state, local});
}

Operation *Partitioner::cloneOnto(Operation *op, ValueRange operands, TypeRange results) {
  Operation *clone = builder.insert(op->cloneWithoutRegions());
  clone->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), results))
    result.setType(type);
  return clone;
}

bool Partitioner::isParameterViewOp(Operation *op) const {
  auto iface = dyn_cast<AtenOpInterface>(op);
  if (!iface || op->getNumOperands() == 0)
    return false;
  bool movesOnly = iface.isViewLike() ||
                   llvm::is_contained({"permute", "expand", "_to_copy", "clone"}, op->getName().stripDialect());
  return movesOnly &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isParameter(operand) || parameterViews.contains(operand); }) &&
         llvm::none_of(op->getResults(), [&](Value result) { return domain.getHome(result).has_value(); });
}

LogicalResult Partitioner::emit(Operation *op) {
  loc = op->getLoc();
  segment = op->getAttr(kSegmentAttr);
  if (!isa<AtenOpInterface>(op))
    return op->emitError() << "'" << op->getName() << "' cannot be partitioned: it is no aten op ("
                           << describeSource(loc) << ")";
  if (isParameterViewOp(op)) {
    parameterViews.insert_range(op->getResults());
    return success();
  }
  if (ListOp::isListOp(op))
    return emitList(op);
  if (OwnerDomain::isFullNorm(op) && !isParameter(op->getOperand(0)) && !parameterViews.contains(op->getOperand(0)))
    if (std::optional<Place> place = domain.getWanted(op->getOperand(0)))
      return emitNorm(op, place->unit, {{Member(place->segment, op->getOperand(0)), op->getResult(0)}});
  if (Place place; runsAtHome(op, place))
    return emitAtHome(op, place);
  if (emitStackOfTables(op))
    return success();
  return emitGeneric(op);
}

LogicalResult Partitioner::emitGeneric(Operation *op) {
  SmallVector<AxisState> operandStates;
  for (Value operand : op->getOperands()) {
    AxisState state = getState(operand);
    operandStates.push_back(state.isOwned() ? AxisState::replicated() : state);
  }
  bool staysPartial = llvm::all_of(
      op->getResults(), [&](Value result) { return domain.isGradientBound(result) || domain.getHome(result); });
  FailureOr<OpStates> chosen = propagate(op, operandStates, staysPartial, step.ranks);
  if (failed(chosen))
    return failure();

  SmallVector<Value> operands;
  for (auto [operand, want, fill] : llvm::zip_equal(op->getOperands(), chosen->operands, chosen->fill))
    operands.push_back(fill ? getMasked(operand, want, *fill) : get(operand, want));
  SmallVector<Type> types;
  for (auto [result, state] : llvm::zip_equal(op->getResults(), chosen->results))
    types.push_back(getLocalType(cast<RankedTensorType>(result.getType()), state));
  warnIfReplicated(op, operandStates, *chosen);

  Operation *clone = builder.insert(op->cloneWithoutRegions());
  clone->setOperands(operands);
  if (failed(cast<AtenOpInterface>(clone).localize(types)))
    return op->emitError() << "'" << op->getName() << "' cannot compute a shard of its result (" << describeSource(loc)
                           << ")";
  for (auto [old, state, result, type] :
       llvm::zip_equal(op->getResults(), chosen->results, clone->getResults(), types)) {
    result.setType(type);
    setLocal(old, state, result);
  }
  return success();
}

void Partitioner::warnIfReplicated(Operation *op, ArrayRef<AxisState> before, const OpStates &chosen) {
  auto iface = cast<AtenOpInterface>(op);
  bool wasSharded = llvm::any_of(before, [](AxisState s) { return s.isShard(); });
  bool isSharded = llvm::any_of(chosen.operands, [](AxisState s) { return s.isShard(); });
  if (iface.isHeavy() && wasSharded && !isSharded)
    op->emitWarning() << "'" << op->getName() << "' runs in full on every rank ("
                      << static_cast<int64_t>(iface.getFlops()) << " floating-point operations; "
                      << describeSource(op->getLoc())
                      << "); keep the batch dimension whole through the ops "
                         "before it";
}

} // namespace spmd::partition
