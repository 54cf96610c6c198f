//===- BlockOps.cpp - what the threads of a block do together -------------===//

#include "BlockOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace spmd::kernel {

Value reduceBlock(GpuBuilder &b, ReduceKind kind, Value value, int64_t threads) {
  value = b.reduceWarp(kind, value);
  int64_t warps = threads / kWarpSize;
  if (warps == 1)
    return value;
  Type type = value.getType();
  Value partials = b.shared(type, warps);
  Value warp = b.floorDiv(b.getThread(), kWarpSize), lane = b.mod(b.getThread(), kWarpSize);
  b.when(b.isEqual(lane, b.i64(0)), [&] { b.store(value, partials, warp); });
  b.barrier();
  // Lane l takes that of warp l, so every warp makes the same tree.
  return b.reduceWarp(kind, b.load(partials, type, b.mod(lane, warps)), warps);
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
