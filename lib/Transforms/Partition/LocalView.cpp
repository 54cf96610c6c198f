//===- LocalView.cpp - the captured step is one rank's --------------------===//
//
// [Note: local view]
// With view=local the captured step is what one rank does with its rows, and all that ranks share is gradients, which
// are averaged: FSDP's own semantics; and what the step's own collectives give (AmongRanks.cpp). A value is then
// varying (each rank has its own; there is no global one) or replicated, and an op with a varying operand gives varying
// results; nothing is cut, so no sharding rule is needed.
//
// A gradient stops varying where the optimizer sees it: all of a unit's are packed, summed over the ranks and scattered
// as in the global view, and divided by the number of ranks, or by another factor. That covers clipping, whose norm is
// that of the averaged gradients, like FSDP's. Any other op of the optimizer that reads a gradient gets the average,
// too; one that reads another varying value (a loss) is an error, since nothing says what the ranks' values should be
// together.
//
// Of a gradient that outlives the step ranks have summands as in the global view, whose sum it is. So what a rank has
// of its own gradients, which are added up and divided, is divided as it leaves and multiplied as it comes back.
//
// Results that vary stay so, and so do buffers: each rank has its own running statistics.
//
// Ranks draw numbers of their own: element i of rank r is number r * N + i of the N elements that each draws, so that
// of a batch which is cut evenly every row gets what the global view draws for it. What the optimizer draws is the same
// on all ranks, as its parameters are.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenRandom.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

/// The mean over the ranks, from their sum.
Value Partitioner::average(Value sum) {
  return create<aten::DivScalarOp>(sum.getType(), sum, builder.getI64IntegerAttr(step.ranks));
}

/// What FSDP makes of a gradient that has been added up; its factor is the number of ranks unless it is told another.
Value Partitioner::divideGradient(Value sum) {
  double factor = step.gradientDivideFactor;
  if (factor == static_cast<double>(step.ranks))
    return average(sum);
  return factor == 1 ? sum : create<aten::DivScalarOp>(sum.getType(), sum, builder.getF64FloatAttr(factor)).getResult();
}

/// Of a gradient that all ranks have alike (of a penalty alone) FSDP adds up as many as there are ranks.
Value Partitioner::scaleSameGradient(Value value, Value whole) {
  auto ranks = static_cast<double>(step.ranks);
  Operation *op = value.getDefiningOp();
  bool isGradient = op && getPhase(op) == StepPhase::backward;
  if (!step.isLocalView || !isGradient || step.gradientDivideFactor == ranks)
    return whole;
  return create<aten::MulScalarOp>(whole.getType(), whole, builder.getF64FloatAttr(ranks / step.gradientDivideFactor));
}

InFlightDiagnostic Partitioner::emitVaryingError(Operation *op) {
  return op->emitError()
         << "'" << op->getName() << "' of the optimizer reads a value that differs from rank to rank ("
         << describeSource(loc)
         << "); with view=local only gradients are averaged; use view=global, or compute it outside the step";
}

/// A varying value that ranks average is a gradient: none that they have of their own (an argument, but a gradient that
/// outlives the step), and none that is computed after the last backward.
bool Partitioner::isAveraged(Value value) const {
  if (step.summands.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  auto number = op ? op->getAttrOfType<IntegerAttr>(kSegmentAttr) : IntegerAttr();
  if (!number)
    return op != nullptr;
  auto module = step.func->getParentOfType<ModuleOp>();
  int64_t segment = number.getInt();
  while (getPhase(module, segment) && getPhase(module, segment) != StepPhase::backward)
    ++segment;
  return getPhase(module, segment).has_value();
}

/// A gradient that has been reduced is what the chunk holds, and no rank's own value any more.
void Partitioner::takeReduced(Value value) {
  auto carrier = carriers.find(value);
  if (!getState(value).isVarying() || carrier == carriers.end())
    return;
  states[value] = *partition::getState(carrier->second.value.getType());
  locals.erase(value);
}

/// Whether an op of the optimizer is computed.
bool Partitioner::isInOptimizer() const {
  auto number = dyn_cast_or_null<IntegerAttr>(segment);
  return number && getPhase(step.func->getParentOfType<ModuleOp>(), number.getInt()) == StepPhase::optimizer;
}

/// The numbers of a rank's elements among those of all ranks, in the shape of `index`, which numbers its own.
Value Partitioner::getOwnNumbers(RankedTensorType index) {
  int64_t count = index.getNumElements();
  auto own = RankedTensorType::get({count}, index.getElementType());
  auto all = RankedTensorType::get({count * step.ranks}, index.getElementType());
  Value numbers =
      create<aten::ArangeStartStepOp>(getLocalType(all, AxisState::replicated()), builder.getI64IntegerAttr(0),
                                      builder.getI64IntegerAttr(count * step.ranks), builder.getI64IntegerAttr(1));
  Value rows =
      create<SliceOp>(getLocalType(own, AxisState::varying()), numbers, step.meshRef(), step.axes(),
                      builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(count));
  return view(rows, index, AxisState::varying());
}

/// Averages the gradients among the operands of an op of the optimizer.
LogicalResult Partitioner::reduceVaryingOperands(Operation *op) {
  if (!isInOptimizer())
    return success();
  for (Value operand : op->getOperands()) {
    if (!getState(operand).isVarying())
      continue;
    std::optional<Place> place = domain.getWanted(operand);
    if (!carriers.count(operand)) {
      if (!place)
        return emitVaryingError(op);
      if (failed(bringHome(place->unit, {Member(place->segment, operand)})))
        return failure();
    }
    takeReduced(operand);
  }
  return success();
}

/// Emits an op that computes on each rank's own values. False when none of its operands varies.
FailureOr<bool> Partitioner::emitVarying(Operation *op) {
  if (failed(reduceVaryingOperands(op)))
    return failure();
  auto varies = [&](Value value) { return getState(value).isVarying(); };
  auto draw = dyn_cast<aten::PhiloxUniformOp>(op);
  bool drawsOwn = draw && !isInOptimizer();
  if (!drawsOwn && llvm::none_of(op->getOperands(), varies))
    return false;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (Value operand : op->getOperands())
    operands.push_back(drawsOwn && operand == draw.getIndex()
                           ? getOwnNumbers(typeOf(operand))
                           : get(operand, varies(operand) ? AxisState::varying() : AxisState::replicated()));
  for (Value result : op->getResults())
    types.push_back(getLocalType(typeOf(result), AxisState::varying()));
  Operation *clone = cloneOnto(op, operands, types);
  for (auto [old, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
    setLocal(old, AxisState::varying(), result);
  return true;
}

} // namespace spmd::partition
