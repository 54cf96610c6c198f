//===- VectorLoop.cpp - innermost loops and their reductions --------------===//

#include "VectorLoop.h"

using namespace mlir;

namespace spmd::kernel {

SmallVector<Value> emitVectorLoop(KernelBuilder &b, Value low, Value high, ArrayRef<Reduction> reductions,
                                  bool vectorize, EmitPoint emitPoint, int64_t together) {
  unsigned count = reductions.size();
  auto emitNeutrals = [&](int64_t width, int64_t copies) {
    SmallVector<Value> out;
    for (int64_t copy = 0; copy < copies; ++copy)
      for (const Reduction &reduction : reductions)
        out.push_back(b.neutral(reduction.kind, getWideType(reduction.type, width)));
    return out;
  };
  // The end of the whole steps in [from, high).
  auto alignDown = [&](Value from, int64_t step) {
    Value length = b.sub(high, from);
    return b.add(from, b.sub(length, b.mod(length, step)));
  };

  Value next = low;
  SmallVector<Value> vectors;
  if (count) {
    int64_t step = kLanes * kAccumulators;
    Value end = alignDown(next, step);
    vectors = b.loop(next, end, step, emitNeutrals(kLanes, kAccumulators), [&](Value i, ValueRange carried) {
      SmallVector<Value> out;
      for (int64_t copy = 0; copy < kAccumulators; ++copy)
        out.append(emitPoint(b.add(i, copy * kLanes), kLanes, carried.slice(copy * count, count)));
      return out;
    });
    next = end;
  }
  if (!count && vectorize && together > 1) {
    Value end = alignDown(next, kLanes * together);
    b.loop(next, end, kLanes * together, [&](Value i) { emitPoint(i, kLanes * together, {}); });
    next = end;
  }
  if (count || vectorize) {
    Value end = alignDown(next, kLanes);
    SmallVector<Value> first(vectors.begin(), vectors.begin() + count);
    first =
        b.loop(next, end, kLanes, first, [&](Value i, ValueRange carried) { return emitPoint(i, kLanes, carried); });
    llvm::copy(first, vectors.begin());
    next = end;
  }
  SmallVector<Value> totals =
      b.loop(next, high, 1, emitNeutrals(1, 1), [&](Value i, ValueRange carried) { return emitPoint(i, 1, carried); });
  for (unsigned r = 0; r < count; ++r) {
    ReduceKind kind = reductions[r].kind;
    Value front = b.combine(kind, vectors[r], vectors[count + r]);
    Value back = b.combine(kind, vectors[2 * count + r], vectors[3 * count + r]);
    totals[r] = b.combine(kind, b.reduceLanes(kind, b.combine(kind, front, back)), totals[r]);
  }
  return totals;
}

} // namespace spmd::kernel
