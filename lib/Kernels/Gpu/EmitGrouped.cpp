//===- EmitGrouped.cpp - grouped_gemm and grouped_outer for GPUs ----------===//
//
// A thread is an element of the result, and sums in the order of k, or of the rows: neighbours read the same rows and
// neighbouring columns. Matrices are small where experts are many; what reads them again finds them in the L2 cache.
//
//===----------------------------------------------------------------------===//

#include "../GroupedValues.h"
#include "../RowValues.h"
#include "GpuEmitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// Runs `body` for element number i of `total`, a thread each.
static void forElements(GpuBuilder &b, int64_t total, const Device &device, llvm::function_ref<void(Value)> body) {
  int64_t threads = device.threadsPerSM / 8;
  Value i = b.add(b.mul(b.getBlock(), threads), b.getThread());
  b.when(b.isLess(i, b.i64(total)), [&] { body(i); });
  b.finish(threads, llvm::divideCeil(total, threads));
}

static LogicalResult emitGpuGroupedGemm(GpuBuilder &b, GroupedGemmOp op, const Device &device) {
  Type element = getElementTypeOrSelf(op.getA().getType());
  int64_t m = op.getM(), n = op.getN(), k = op.getK(), groups = op.getNumGroups();
  forElements(b, m * n, device, [&](Value i) {
    std::pair<Value, Value> place = b.divide(i, n, m * n);
    Value row = place.first, column = place.second;
    Value group = loadRowId(b, b.getPointer(2), op.getGroups().getType(), row);
    Value zero = b.number(getSumType(element), 0), start = b.mul(row, k);
    Value sum = advanceWhere(b, isWithin(b, group, b.i64(0), b.i64(groups)), zero, [&] {
      return b.loop(b.i64(0), b.i64(k), 1, zero, [&](Value inner, ValueRange carried) {
        Value left = loadForSum(b, b.getPointer(0), element, b.add(start, inner));
        Value right = loadForSum(b, b.getPointer(1), element, getMatrixIndex(b, op, group, inner, column));
        return SmallVector<Value>{multiplyAdd(b, left, right, carried[0])};
      });
    })[0];
    storeSum(b, sum, element, b.getResultPointer(0), i);
  });
  return success();
}

static LogicalResult emitGpuGroupedOuter(GpuBuilder &b, GroupedOuterOp op, const Device &device) {
  Type element = getElementTypeOrSelf(op.getA().getType());
  int64_t m = op.getM(), n = op.getN(), total = static_cast<int64_t>(op.getNumGroups()) * m * n;
  forElements(b, total, device, [&](Value i) {
    std::pair<Value, Value> place = b.divide(i, n, total), line = b.divide(place.first, m, total);
    Value column = place.second, group = line.first, own = line.second;
    Value zero = b.number(getSumType(element), 0);
    Value sum = b.loop(b.i64(0), b.i64(op.getRows()), 1, zero,
                       [&](Value row, ValueRange carried) {
                         Value isOwn = b.isEqual(loadRowId(b, b.getPointer(2), op.getGroups().getType(), row), group);
                         return advanceWhere(b, isOwn, carried, [&] {
                           Value left = loadForSum(b, b.getPointer(0), element, b.add(b.mul(row, m), own));
                           Value right = loadForSum(b, b.getPointer(1), element, b.add(b.mul(row, n), column));
                           return SmallVector<Value>{multiplyAdd(b, left, right, carried[0])};
                         });
                       })[0];
    storeSum(b, sum, element, b.getResultPointer(0), i);
  });
  return success();
}

void addGpuGroupedEmitters(GpuEmitters &emitters) {
  emitters.add(emitGpuGroupedGemm);
  emitters.add(emitGpuGroupedOuter);
}

} // namespace spmd::kernel
