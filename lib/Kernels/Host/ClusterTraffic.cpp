//===- ClusterTraffic.cpp - bytes that the loops of a cluster move --------===//
//
// [Note: bytes moved on CPUs]
// What goes between the second-level cache of a core and the memory behind it, as if one core ran all iterations. All
// that is needed goes there once. It does so again where a loop comes back to it after it has touched more than that
// cache holds: in a later pass over a row, or in every iteration of a loop along which an operand does not change. So a
// row that fits is moved once, however many passes there are. Elements are counted, not lines, and not the line that a
// store into the caches reads first.
//
//===----------------------------------------------------------------------===//

#include "ClusterEmitter.h"
#include "dialects/Kernel/Body.h"

using namespace mlir;

namespace spmd::kernel {

/// Bytes that are touched while the dims before `first` stand still.
int64_t ClusterEmitter::getFootprint(unsigned first) const {
  SmallVector<int64_t> box(dims.size(), 1);
  llvm::copy(dims.drop_front(first), box.begin() + first);
  int64_t bytes = 0;
  auto touch = [&](const AccessMap &access, Type type) {
    bytes += access.countReached(box, getNumElements(type)) * getElementBytes(type);
  };
  for (auto [access, type] : llvm::zip_equal(operandAccess, op.getInputs().getTypes()))
    touch(access, type);
  for (auto [access, type] : llvm::zip_equal(resultAccess, op->getResultTypes()))
    touch(access, type);
  for (auto reduce : op.getBodyBlock()->getOps<ReduceOp>())
    if (memory.contains(reduce)) {
      int64_t sums = 1;
      for (unsigned d : getMemoryDims(reduce))
        sums *= box[d];
      bytes += sums * getElementBytes(reduce.getType());
    }
  return bytes;
}

/// How often the loops come to the elements of what changes along the dims `used` and do not find them in the cache.
/// Loops along which it does not change come back to it after an iteration of the innermost of them.
int64_t ClusterEmitter::countReturns(llvm::function_ref<bool(unsigned)> used) const {
  int64_t returns = 1;
  bool isInside = false;
  std::optional<unsigned> between;
  for (unsigned d = dims.size(); d-- > 0;) {
    if (used(d)) {
      isInside = true;
      between.reset();
    } else if (isInside) {
      between = between.value_or(d + 1);
      if (exceedsCache(*between))
        returns *= dims[d];
    }
  }
  return returns;
}

/// Passes over operand `operand` that no longer find it in the cache.
int64_t ClusterEmitter::countLaterPasses(unsigned operand) const {
  Value argument = op.getBodyBlock()->getArgument(operand);
  SmallVector<ClusterSchedule::Stage> stages;
  for (const Root &root : schedule.getRoots())
    if (llvm::is_contained(schedule.getClosure(root.value, isAfterKept(root) ? kept : Value()), argument) &&
        !findOnlyPlace(root))
      stages.push_back(root.stage);
  llvm::sort(stages);
  stages.erase(llvm::unique(stages), stages.end());
  int64_t passes = 0;
  for (size_t i = 1; i < stages.size(); ++i) {
    unsigned first = getOutermostLoop(stages[i - 1], stages[i]);
    auto isUsed = [&](unsigned d) { return operandAccess[operand].uses(d); };
    passes += exceedsCache(first) && llvm::any_of(llvm::seq<unsigned>(first, dims.size()), isUsed);
  }
  return passes;
}

/// The outermost dim that is looped over once more between two stages.
unsigned ClusterEmitter::getOutermostLoop(const ClusterSchedule::Stage &a, const ClusterSchedule::Stage &b) const {
  return op.getParallel() + (std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

/// Adds what is moved more than once.
void ClusterEmitter::countMoved() {
  for (auto [i, operand] : llvm::enumerate(op.getInputs())) {
    const AccessMap &access = operandAccess[i];
    int64_t bytes = access.countReached(dims, getNumElements(operand.getType())) * getElementBytes(operand.getType());
    int64_t returns = countReturns([&](unsigned d) { return access.uses(d); });
    b.addMovedBytes(bytes * (returns * (1 + countLaterPasses(i)) - 1));
  }
  // A kept value is written, read, and written over.
  if (kept && exceedsCache(getOutermostLoop(keptStage, keptUntil)))
    b.addMovedBytes(2 * getNumElements(op.getResult(keptResult).getType()) * getElementBytes(kept.getType()));
  for (auto reduce : op.getBodyBlock()->getOps<ReduceOp>()) {
    if (!memory.contains(reduce))
      continue;
    // Sums are read and written in every iteration.
    SmallVector<unsigned> own = getMemoryDims(reduce);
    int64_t returns = countReturns([&](unsigned d) { return llvm::is_contained(own, d); });
    if (returns > 1)
      b.addMovedBytes(2 * returns * getMemoryCount(reduce) * getElementBytes(reduce.getType()));
  }
}

} // namespace spmd::kernel
