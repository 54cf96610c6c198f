//===- ClusterSchedule.cpp - passes over memory of a cluster --------------===//

#include "dialects/Kernel/ClusterSchedule.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::kernel {

DenseMap<Value, llvm::SmallBitVector> getClusterVaryingDims(ClusterOp op) {
  ArrayRef<int64_t> dims = op.getDims();
  SmallVector<llvm::SmallBitVector> arguments;
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    AccessMap map = AccessMap::get(op.getOperandMap(i));
    llvm::SmallBitVector &varying = arguments.emplace_back(dims.size());
    for (unsigned d = 0; d < dims.size(); ++d)
      if (dims[d] > 1 && map.uses(d))
        varying.set(d);
  }
  return getVaryingDims(*op.getBodyBlock(), dims.size(), arguments);
}

ClusterSchedule::ClusterSchedule(ClusterOp op) : op(op) {
  unsigned parallel = op.getParallel();
  unsigned depth = op.getDims().size() - parallel;
  for (Value argument : op.getBodyBlock()->getArguments())
    stages[argument] = Stage(depth, 0);
  for (Operation &inner : *op.getBodyBlock()) {
    Stage stage(depth, 0);
    for (Value operand : inner.getOperands())
      stage = std::max(stage, getStage(operand));
    if (auto reduce = dyn_cast<ReduceOp>(inner)) {
      int64_t outermost = *llvm::min_element(reduce.getOver()) - parallel;
      ++stage[outermost];
      std::fill(stage.begin() + outermost + 1, stage.end(), 0);
    }
    for (Value result : inner.getResults())
      stages[result] = stage;
  }
}

const ClusterSchedule::Stage &ClusterSchedule::getStage(Value value) const { return stages.find(value)->second; }

SmallVector<Value> ClusterSchedule::getClosure(Value value) const {
  SetVector<Value> seen;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next))
      continue;
    Operation *def = next.getDefiningOp();
    if (def && !isa<ReduceOp>(def))
      llvm::append_range(work, def->getOperands());
  }
  SmallVector<Value> order;
  for (Value argument : op.getBodyBlock()->getArguments())
    if (seen.contains(argument))
      order.push_back(argument);
  for (Operation &inner : *op.getBodyBlock())
    for (Value result : inner.getResults())
      if (seen.contains(result))
        order.push_back(result);
  return order;
}

bool ClusterSchedule::isReadAfterWrite(unsigned operand, unsigned result) const {
  Block *body = op.getBodyBlock();
  Value argument = body->getArgument(operand);
  ValueRange yielded = cast<YieldOp>(body->getTerminator()).getValues();
  const Stage &written = getStage(yielded[result]);
  auto readsLater = [&](Value root) {
    return getStage(root) > written && llvm::is_contained(getClosure(root), argument);
  };
  for (Value value : yielded)
    if (readsLater(value))
      return true;
  for (Operation &inner : *body)
    if (auto reduce = dyn_cast<ReduceOp>(inner))
      if (readsLater(reduce.getValue()))
        return true;
  return false;
}

} // namespace spmd::kernel
