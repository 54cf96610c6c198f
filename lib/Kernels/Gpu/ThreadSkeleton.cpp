//===- ThreadSkeleton.cpp - clusters whose threads work alone -------------===//

#include "ClusterSkeleton.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class ThreadSkeleton : private ClusterSkeleton {
public:
  using ClusterSkeleton::ClusterSkeleton;
  FailureOr<LaunchShape> emit();

private:
  void emitItem(Value item);
  void emitCopies(Value first, int64_t stride, int64_t copies);
  void emitLevel(unsigned level, const Roots &roots);
  void emitLoop(unsigned level, const Roots &roots);
  void emitRoots(const Roots &roots);
  Value loadReduction(ReduceOp reduce, int64_t width) override;
  int64_t getCopies(int64_t threads) const;

  int64_t width = 1;
  /// Points of the grid dims, `width` at a time.
  int64_t items = 1;
  /// Reductions under way that are one value, and those that are memory of the thread.
  DenseMap<Operation *, Value> running, memory;
};

} // namespace

FailureOr<LaunchShape> ThreadSkeleton::emit() {
  bool needsMemory = false;
  for (const Root &root : schedule.getRoots())
    if (root.reduce && !getMemoryDims(root.reduce).empty()) {
      // The thread's own memory is slow and counted per thread: a few sums at most.
      constexpr int64_t kLimit = 256;
      if (getMemoryCount(root.reduce) > kLimit)
        return op.emitOpError("keeps ") << getMemoryCount(root.reduce) << " sums per thread, more than " << kLimit
                                        << "; cut the summed dim into blocks of fewer columns";
      needsMemory = true;
    }
  if (!gridDims.empty()) {
    laneDim = gridDims.back();
    width = needsMemory ? 1 : getWidth(*laneDim);
  }
  for (unsigned d : gridDims)
    items *= dims[d];
  items /= width;
  // Blocks of 256, smaller ones where that leaves SMs without a block.
  int64_t threads = 256;
  while (threads > kWarpSize && items < threads * device.sms)
    threads /= 2;
  int64_t copies = nest.empty() ? getCopies(threads) : 1;
  int64_t perBlock = threads * copies;
  scopes.emplace_back();
  Value first = b.add(b.mul(block, perBlock), b.getThread());
  auto emitGuarded = [&](Value item) {
    b.when(b.isLess(item, b.i64(items)), [&] { emitItem(item); });
  };
  if (copies == 1 && items % perBlock == 0) {
    emitItem(first);
  } else if (copies == 1) {
    emitGuarded(first);
  } else if (items % perBlock == 0) {
    emitCopies(first, threads, copies);
  } else {
    // Only the last block has items that are not there.
    Value isWhole = b.isLess(block, b.i64(items / perBlock));
    b.choose(
        isWhole, [&] { emitCopies(first, threads, copies); },
        [&] {
          for (int64_t copy = 0; copy < copies; ++copy)
            emitGuarded(b.add(first, copy * threads));
        });
  }
  scopes.pop_back();
  return LaunchShape{threads, (items + perBlock - 1) / perBlock};
}

/// Items that a thread has in flight: enough loads to hide memory's latency, as long as every SM has several blocks.
int64_t ThreadSkeleton::getCopies(int64_t threads) const {
  constexpr int64_t kLoadsInFlight = 4, kBlocksPerSM = 4;
  int64_t loads = 0;
  for (const AccessMap &access : operandAccess)
    loads += laneDim && access.uses(*laneDim);
  int64_t copies = 1;
  while (copies * 2 * loads <= kLoadsInFlight && items >= copies * 2 * threads * device.sms * kBlocksPerSM)
    copies *= 2;
  return copies;
}

void ThreadSkeleton::emitItem(Value item) {
  scopes.emplace_back();
  setItem(item, items, width);
  emitLevel(0, getRoots());
  scopes.pop_back();
}

/// All loads of all items come before the first store, so that they are in flight together.
void ThreadSkeleton::emitCopies(Value first, int64_t stride, int64_t copies) {
  SmallVector<Scope> items(copies);
  for (auto [i, scope] : llvm::enumerate(items)) {
    setItem(b.add(first, i * stride), this->items, width);
    for (const Root *root : getRoots())
      for (Value value : schedule.getClosure(root->value))
        if (isa<BlockArgument>(value))
          getValue(value, width, scope);
  }
  for (auto [i, scope] : llvm::enumerate(items)) {
    setItem(b.add(first, i * stride), this->items, width);
    scopes.push_back(std::move(scope));
    emitRoots(getRoots());
    scopes.pop_back();
  }
}

/// Everything is read before anything is written: a result may lie where an operand does.
void ThreadSkeleton::emitRoots(const Roots &roots) {
  SmallVector<Value> values;
  for (const Root *root : roots)
    values.push_back(getValue(root->value, width, scopes.back()));
  for (auto [root, value] : llvm::zip_equal(roots, values)) {
    if (!root->reduce) {
      bool hasLanes = laneDim && root->dims.test(*laneDim);
      storeResult(*root, hasLanes ? b.broadcast(value, width) : value, hasLanes ? width : 1);
    } else if (Value pointer = memory.lookup(root->reduce)) {
      combineInMemory(root->reduce, pointer, value);
    } else {
      Value &sum = running[root->reduce];
      auto vector = dyn_cast<VectorType>(sum.getType());
      sum = b.combine(root->reduce.getKind(), sum, b.broadcast(value, vector ? width : 1));
    }
  }
}

/// Runs `roots`, whose loops outside of `level` are open.
void ThreadSkeleton::emitLevel(unsigned level, const Roots &roots) {
  if (roots.empty())
    return;
  if (level == nest.size())
    return emitRoots(roots);
  for (const LevelStep &step : getSteps(level, roots)) {
    emitLevel(level + 1, step.before);
    if (!step.inside.empty())
      emitLoop(level, step.inside);
    emitLevel(level + 1, step.after);
  }
}

void ThreadSkeleton::emitLoop(unsigned level, const Roots &roots) {
  llvm::SmallBitVector changing(dims.size());
  for (unsigned d : ArrayRef(nest).drop_front(level))
    changing.set(d);
  emitInvariant(roots, changing, width);
  SmallVector<ReduceOp> carried;
  for (const Root *root : roots) {
    ReduceOp reduce = root->reduce;
    if (!reduce)
      continue;
    bool begins = getLevel(reduce) == level;
    bool hasLanes = laneDim && schedule.getVarying(reduce.getValue()).test(*laneDim);
    Value neutral = begins ? b.neutral(reduce.getKind(), getWideType(reduce.getType(), hasLanes ? width : 1)) : Value();
    if (getMemoryDims(reduce).empty()) {
      if (begins)
        running[reduce] = neutral;
      if (getLevel(reduce) <= level)
        carried.push_back(reduce);
    } else if (begins) {
      Value &pointer = memory[reduce];
      int64_t count = getMemoryCount(reduce);
      if (!pointer)
        pointer = b.local(reduce.getType(), count);
      b.loop(b.i64(0), b.i64(count), 1, [&](Value i) { b.store(neutral, pointer, i); });
    }
  }
  SmallVector<Value> inits;
  for (ReduceOp reduce : carried)
    inits.push_back(running.lookup(reduce));
  SmallVector<Value> sums = b.loop(b.i64(0), b.i64(dims[nest[level]]), 1, inits, [&](Value i, ValueRange values) {
    for (auto [reduce, value] : llvm::zip_equal(carried, values))
      running[reduce] = value;
    position[nest[level]] = i;
    scopes.emplace_back();
    emitLevel(level + 1, roots);
    scopes.pop_back();
    SmallVector<Value> out;
    for (ReduceOp reduce : carried)
      out.push_back(running.lookup(reduce));
    return out;
  });
  position[nest[level]] = Value();
  for (auto [reduce, sum] : llvm::zip_equal(carried, sums)) {
    running[reduce] = sum;
    if (getLevel(reduce) == level)
      scopes.back()[reduce] = sum;
  }
}

Value ThreadSkeleton::loadReduction(ReduceOp reduce, int64_t) {
  return b.load(memory.lookup(reduce), reduce.getType(), getMemoryIndex(reduce));
}

FailureOr<LaunchShape> emitThreads(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                   const Device &device) {
  return ThreadSkeleton(b, op, arguments, device).emit();
}

} // namespace spmd::kernel
