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

/// Dims inside the outermost loop of the reduction along which its result varies.
SmallVector<unsigned> ClusterEmitter::getMemoryDims(ReduceOp reduce) const {
  SmallVector<unsigned> out;
  for (unsigned d = *llvm::min_element(reduce.getOver()) + 1; d < dims.size(); ++d)
    if (schedule.getVarying(reduce).test(d))
      out.push_back(d);
  return out;
}

Value ClusterEmitter::getMemoryIndex(ReduceOp reduce) {
  Value index = b.i64(0);
  for (unsigned d : getMemoryDims(reduce))
    index = b.add(b.mul(index, dims[d]), position[d]);
  return index;
}

void ClusterEmitter::clearMemory(ReduceOp reduce) {
  int64_t count = 1;
  for (unsigned d : getMemoryDims(reduce))
    count *= dims[d];
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
  auto vector = dyn_cast<VectorType>(value.getType());
  Value pointer = memory.lookup(reduce), index = getMemoryIndex(reduce);
  Value old = b.load(pointer, reduce.getType(), index, vector ? vector.getNumElements() : 1);
  b.store(b.combine(reduce.getKind(), old, value), pointer, index);
}

} // namespace spmd::kernel
