//===- BlockOps.cpp - what the threads of a block do together -------------===//

#include "BlockOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

SmallVector<Value> reduceBlock(GpuBuilder &b, ArrayRef<ReduceKind> kinds, ArrayRef<Value> values, int64_t threads,
                               bool isInLoop, int64_t teams, Value turn) {
  SmallVector<Value> totals, partials;
  for (auto [kind, value] : llvm::zip_equal(kinds, values))
    totals.push_back(b.reduceWarp(kind, value));
  int64_t warps = threads / kWarpSize;
  if (warps == 1)
    return totals;
  for (Value total : totals)
    partials.push_back(b.shared(total.getType(), warps * teams * (turn ? 2 : 1)));
  Value warp = b.floorDiv(b.getThread(), kWarpSize), lane = b.mod(b.getThread(), kWarpSize);
  Value first = teams == 1 ? b.i64(0) : b.mul(b.floorDiv(b.getThread(), threads), warps);
  if (turn) {
    // Who writes where the turn before the last did has met all others at the barrier of the last, behind their reads.
    Value place = b.mul(b.mod(turn, 2), warps * teams);
    warp = b.add(place, warp);
    first = b.add(place, first);
  } else if (isInLoop) {
    // Partials of an iteration before may still be read.
    b.barrier();
  }
  b.when(b.isEqual(lane, b.i64(0)), [&] {
    for (auto [total, partial] : llvm::zip_equal(totals, partials))
      b.store(total, partial, warp);
  });
  b.barrier();
  // Lane l takes that of warp l, as often as the warps fit into the lanes, so every warp makes the same tree.
  int64_t lanes = llvm::PowerOf2Ceil(warps);
  Value from = b.mod(lane, lanes), isThere;
  if (lanes != warps) {
    isThere = b.isLess(from, b.i64(warps));
    from = arith::SelectOp::create(b, isThere, from, b.i64(0));
  }
  from = b.add(first, from);
  for (auto [kind, total, partial] : llvm::zip_equal(kinds, totals, partials)) {
    Value mine = b.load(partial, total.getType(), from);
    if (isThere)
      mine = arith::SelectOp::create(b, isThere, mine, b.neutral(kind, total.getType()));
    total = b.reduceWarp(kind, mine, lanes);
  }
  return totals;
}

Value reduceBlock(GpuBuilder &b, ReduceKind kind, Value value, int64_t threads) {
  return reduceBlock(b, kind, ArrayRef(value), threads, /*isInLoop=*/false).front();
}

BlockScan scanBlock(GpuBuilder &b, Value value, int64_t threads) {
  Type i32 = b.getI32Type();
  int64_t warps = threads / kWarpSize;
  Value warp = b.floorDiv(b.getThread(), kWarpSize), lane = b.mod(b.getThread(), kWarpSize);
  Value zero = b.number(i32, 0), before = zero, sum = value;
  // Lanes whose number has the bit are behind those that do not.
  for (int64_t bit = 1; bit < kWarpSize; bit *= 2) {
    Value other = b.shuffleXor(sum, bit);
    Value isBehind = b.isLess(b.i64(bit - 1), b.mod(lane, 2 * bit));
    before = arith::AddIOp::create(b, before, arith::SelectOp::create(b, isBehind, other, zero));
    sum = arith::AddIOp::create(b, sum, other);
  }
  Value totals = b.shared(i32, warps);
  b.when(b.isEqual(lane, b.i64(0)), [&] { b.store(sum, totals, warp); });
  b.barrier();
  Value total = zero;
  for (int64_t w = 0; w < warps; ++w) {
    Value ofWarp = b.load(totals, i32, b.i64(w));
    Value counts = arith::SelectOp::create(b, b.isLess(b.i64(w), warp), ofWarp, zero);
    before = arith::AddIOp::create(b, before, counts);
    total = arith::AddIOp::create(b, total, ofWarp);
  }
  return {before, total};
}

int64_t getAccessWidth(int64_t bytes, int64_t size) {
  int64_t width = std::max<int64_t>(kWideBytes / bytes, 1);
  while (size % width)
    width /= 2;
  return width;
}

} // namespace spmd::kernel
