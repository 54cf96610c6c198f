//===- GroupedValues.cpp - what grouped GEMMs compute ---------------------===//

#include "GroupedValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

Type getSumType(Type element) {
  return element.isF16() || element.isBF16() ? Float32Type::get(element.getContext()) : element;
}

Value loadForSum(CodeBuilder &b, Value pointer, Type element, Value index, int64_t width) {
  Value value = b.load(pointer, element, index, width);
  Type sum = getSumType(element);
  return sum == element ? value : Value(arith::ExtFOp::create(b, getWideType(sum, width), value));
}

void storeSum(CodeBuilder &b, Value sum, Type element, Value pointer, Value index) {
  if (getElementTypeOrSelf(sum.getType()) != element) {
    auto vector = dyn_cast<VectorType>(sum.getType());
    sum = arith::TruncFOp::create(b, getWideType(element, vector ? vector.getNumElements() : 1), sum);
  }
  b.store(sum, pointer, index);
}

Value multiplyAdd(CodeBuilder &b, Value x, Value y, Value sum) { return math::FmaOp::create(b, x, y, sum); }

SmallVector<Value> advanceWhere(CodeBuilder &b, Value condition, ValueRange carried,
                                llvm::function_ref<SmallVector<Value>()> next) {
  auto choice = scf::IfOp::create(b, carried.getTypes(), condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, next());
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, carried);
  return SmallVector<Value>(choice.getResults());
}

Value getMatrixIndex(CodeBuilder &b, GroupedGemmOp op, Value group, Value k, Value column) {
  int64_t ld = op.getLdb();
  Value start = b.add(b.mul(group, op.getBStride()), op.getBOffset());
  return b.add(start, op.getTransB() ? b.add(b.mul(column, ld), k) : b.add(b.mul(k, ld), column));
}

} // namespace spmd::kernel
