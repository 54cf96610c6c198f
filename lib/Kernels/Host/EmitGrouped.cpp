//===- EmitGrouped.cpp - loops of grouped_gemm and grouped_outer ----------===//
//
// [Note: rows of a group]
// Rows are read where they lie, in whatever order groups come: an iteration is a row of the result, and what it sums
// does not depend on which rows are its neighbours. So bits depend neither on threads nor on how many rows a rank has.
//
//===----------------------------------------------------------------------===//

#include "../GroupedValues.h"
#include "../RowValues.h"
#include "Emitters.h"
#include "VectorLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// Vectors of a block of columns, whose sums stay in registers.
static constexpr int64_t kVectors = 4;

/// Runs `body(first column, width, count)` over [0, columns), by `count` groups of `width` columns side by side.
static void forColumns(KernelBuilder &b, int64_t columns, llvm::function_ref<void(Value, int64_t, int64_t)> body) {
  int64_t blocks = columns - columns % (kLanes * kVectors), vectors = columns - columns % kLanes;
  b.loop(b.i64(0), b.i64(blocks), kLanes * kVectors, [&](Value column) { body(column, kLanes, kVectors); });
  b.loop(b.i64(blocks), b.i64(vectors), kLanes, [&](Value column) { body(column, kLanes, 1); });
  b.loop(b.i64(vectors), b.i64(columns), 1, [&](Value column) { body(column, 1, 1); });
}

static SmallVector<Value> zeros(KernelBuilder &b, Type type, int64_t width, int64_t count) {
  return SmallVector<Value>(count, b.number(getWideType(type, width), 0));
}

/// Row `row` times a matrix whose rows are contiguous: columns side by side.
static void multiplyByRows(KernelBuilder &b, GroupedGemmOp op, Value row, Value group) {
  Type element = getElementTypeOrSelf(op.getA().getType()), sum = getSumType(element);
  int64_t n = op.getN(), k = op.getK();
  forColumns(b, n, [&](Value column, int64_t width, int64_t count) {
    auto step = [&](Value inner, ValueRange carried) {
      Value left = b.broadcast(loadForSum(b, b.getPointer(0), element, b.add(b.mul(row, k), inner)), width);
      SmallVector<Value> out;
      for (int64_t i = 0; i < count; ++i) {
        Value at = getMatrixIndex(b, op, group, inner, b.add(column, i * width));
        out.push_back(multiplyAdd(b, left, loadForSum(b, b.getPointer(1), element, at, width), carried[i]));
      }
      return out;
    };
    SmallVector<Value> sums = b.loop(b.i64(0), b.i64(k), 1, zeros(b, sum, width, count), step);
    for (auto [i, value] : llvm::enumerate(sums))
      storeSum(b, value, element, b.getResultPointer(0), b.add(b.add(b.mul(row, n), column), i * width));
  });
}

/// The same with a matrix whose columns are contiguous: products along them.
static void multiplyByColumns(KernelBuilder &b, GroupedGemmOp op, Value row, Value group) {
  Type element = getElementTypeOrSelf(op.getA().getType());
  int64_t n = op.getN(), k = op.getK();
  b.loop(b.i64(0), b.i64(n), 1, [&](Value column) {
    auto step = [&](Value inner, int64_t width, ValueRange sums) {
      Value left = loadForSum(b, b.getPointer(0), element, b.add(b.mul(row, k), inner), width);
      Value at = getMatrixIndex(b, op, group, inner, column);
      return SmallVector<Value>{multiplyAdd(b, left, loadForSum(b, b.getPointer(1), element, at, width), sums[0])};
    };
    Value sum = emitVectorLoop(b, b.i64(0), b.i64(k), Reduction{ReduceKind::Add, getSumType(element)},
                               /*vectorize=*/true, step)
                    .front();
    storeSum(b, sum, element, b.getResultPointer(0), b.add(b.mul(row, n), column));
  });
}

static LogicalResult emitGroupedGemm(KernelBuilder &b, GroupedGemmOp op) {
  Type element = getElementTypeOrSelf(op.getA().getType());
  int64_t n = op.getN(), groups = op.getNumGroups();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value row) {
    Value group = loadRowId(b, b.getPointer(2), op.getGroups().getType(), row);
    auto multiply = [&] { op.getTransB() ? multiplyByColumns(b, op, row, group) : multiplyByRows(b, op, row, group); };
    auto clear = [&] {
      forColumns(b, n, [&](Value column, int64_t width, int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          b.store(b.number(getWideType(element, width), 0), b.getResultPointer(0),
                  b.add(b.add(b.mul(row, n), column), i * width));
      });
    };
    b.choose(isWithin(b, group, b.i64(0), b.i64(groups)), multiply, clear);
  });
  return success();
}

static LogicalResult emitGroupedOuter(KernelBuilder &b, GroupedOuterOp op) {
  Type element = getElementTypeOrSelf(op.getA().getType()), sum = getSumType(element);
  int64_t m = op.getM(), n = op.getN();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value iteration) {
    Value group = b.floorDiv(iteration, m), i = b.mod(iteration, m);
    forColumns(b, n, [&](Value column, int64_t width, int64_t count) {
      auto step = [&](Value row, ValueRange carried) {
        Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                            loadRowId(b, b.getPointer(2), op.getGroups().getType(), row), group);
        return advanceWhere(b, isOwn, carried, [&] {
          Value left = b.broadcast(loadForSum(b, b.getPointer(0), element, b.add(b.mul(row, m), i)), width);
          SmallVector<Value> out;
          for (int64_t v = 0; v < count; ++v) {
            Value at = b.add(b.add(b.mul(row, n), column), v * width);
            out.push_back(multiplyAdd(b, left, loadForSum(b, b.getPointer(1), element, at, width), carried[v]));
          }
          return out;
        });
      };
      SmallVector<Value> sums =
          b.loop(b.i64(0), b.i64(op.getRows()), 1, zeros(b, sum, width, count), step);
      for (auto [v, value] : llvm::enumerate(sums))
        storeSum(b, value, element, b.getResultPointer(0), b.add(b.add(b.mul(iteration, n), column), v * width));
    });
  });
  return success();
}

void addGroupedEmitters(HostEmitters &emitters) {
  emitters.add(emitGroupedGemm);
  emitters.add(emitGroupedOuter);
}

} // namespace spmd::kernel
