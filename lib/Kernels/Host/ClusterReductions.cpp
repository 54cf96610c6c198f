//===- ClusterReductions.cpp - reductions that end outside the innermost loop -===//

#include "ClusterEmitter.h"

using namespace mlir;

namespace spmd::kernel {

Value ClusterEmitter::loadReduction(ReduceOp reduce, int64_t width) {
  SmallVector<unsigned> memoryDims = getMemoryDims(reduce);
  bool wide = !memoryDims.empty() && memoryDims.back() == innermostDim();
  return b.load(memory.lookup(reduce), reduce.getType(), getMemoryIndex(reduce), wide ? width : 1);
}

bool ClusterEmitter::isInnermost(ReduceOp reduce) const {
  return llvm::is_contained(reduce.getOver(), static_cast<int64_t>(innermostDim()));
}

bool ClusterEmitter::needsMemory(ReduceOp reduce) const {
  return reduce.getOver().size() > 1 || reduce.getOver().front() != static_cast<int64_t>(dims.size() - 1);
}

void ClusterEmitter::clearMemory(ReduceOp reduce) {
  int64_t count = getMemoryCount(reduce);
  Value pointer = memory.lookup(reduce);
  auto fill = [&](Value from, Value to, int64_t width) {
    Value neutral = b.neutral(reduce.getKind(), getWideType(reduce.getType(), width));
    b.loop(from, to, width, [&](Value i) { b.store(neutral, pointer, i); });
  };
  Value whole = b.i64(count - count % kLanes);
  fill(b.i64(0), whole, kLanes);
  fill(whole, b.i64(count), 1);
}

void ClusterEmitter::accumulate(ReduceOp reduce, Value value) {
  combineInMemory(reduce, memory.lookup(reduce), value);
}

} // namespace spmd::kernel
