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

ClusterSchedule::ClusterSchedule(ClusterOp op) : op(op), varying(getClusterVaryingDims(op)) {
  unsigned parallel = op.getParallel();
  unsigned rank = op.getDims().size();
  Block *body = op.getBodyBlock();
  for (Value argument : body->getArguments())
    stages[argument] = Stage(rank - parallel, 0);
  for (Operation &inner : *body) {
    Stage stage(rank - parallel, 0);
    for (Value operand : inner.getOperands())
      for (auto [mine, theirs] : llvm::zip_equal(stage, stages[operand]))
        mine = std::max(mine, theirs);
    if (auto reduce = dyn_cast<ReduceOp>(inner))
      ++stage[*llvm::min_element(reduce.getOver()) - parallel];
    for (Value result : inner.getResults())
      stages[result] = stage;
  }
  for (auto [i, value] : llvm::enumerate(cast<YieldOp>(body->getTerminator()).getValues())) {
    AccessMap map = AccessMap::get(op.getResultMap(i));
    llvm::SmallBitVector dims(rank);
    for (unsigned d = 0; d < rank; ++d)
      if (map.uses(d))
        dims.set(d);
    addRoot({value, stages[value], ReduceOp(), static_cast<unsigned>(i), dims});
  }
}

void ClusterSchedule::addRoot(Root root) {
  unsigned parallel = op.getParallel();
  for (Value leaf : getClosure(root.value)) {
    auto reduce = leaf.getDefiningOp<ReduceOp>();
    if (!reduce)
      continue;
    // The reduction must have been made in the iteration of the outer loops that `root` runs in.
    Stage stage = stages[reduce.getValue()];
    unsigned outermost = *llvm::min_element(reduce.getOver()) - parallel;
    std::copy_n(root.stage.begin(), outermost, stage.begin());
    if (llvm::any_of(roots, [&](const Root &other) { return other.reduce == reduce && other.stage == stage; }))
      continue;
    llvm::SmallBitVector dims = getVarying(reduce.getValue());
    for (int64_t d : reduce.getOver())
      dims.set(d);
    addRoot({reduce.getValue(), stage, reduce, 0, dims});
  }
  roots.push_back(std::move(root));
}

SmallVector<Value> ClusterSchedule::getClosure(Value value, Value known) const {
  SetVector<Value> seen;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next))
      continue;
    Operation *def = next.getDefiningOp();
    if (def && !isa<ReduceOp>(def) && next != known)
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
  Value argument = op.getBodyBlock()->getArgument(operand);
  const Root *write = llvm::find_if(roots, [&](const Root &root) { return !root.reduce && root.result == result; });
  return llvm::any_of(roots, [&](const Root &root) {
    return root.stage > write->stage && llvm::is_contained(getClosure(root.value), argument);
  });
}

} // namespace spmd::kernel
