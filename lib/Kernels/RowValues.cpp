//===- RowValues.cpp - what gathers, scatters and sorts compute -----------===//

#include "RowValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

Value loadRowId(CodeBuilder &b, Value pointer, Type type, Value i) {
  Value id = b.load(pointer, getElementTypeOrSelf(type), i);
  return id.getType().isInteger(64) ? id : Value(arith::ExtSIOp::create(b, b.getI64Type(), id));
}

Value isWithin(CodeBuilder &b, Value value, Value low, Value high) {
  Value above = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, value, low);
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, value, high);
  return arith::AndIOp::create(b, above, below);
}

Value combineRows(CodeBuilder &b, ScatterKind kind, Value old, Value value) {
  switch (kind) {
  case ScatterKind::Set:
    return value;
  case ScatterKind::Add:
    return b.combine(ReduceKind::Add, old, value);
  case ScatterKind::Max:
    return b.combine(ReduceKind::Max, old, value);
  case ScatterKind::Min:
    return b.combine(ReduceKind::Min, old, value);
  case ScatterKind::Mul:
    return b.combine(ReduceKind::Mul, old, value);
  }
  llvm_unreachable("all kinds are handled");
}

bool combinesInF32(ScatterRowsOp op) {
  Type element = getElementTypeOrSelf(op.getSrc().getType());
  return (op.getKind() == ScatterKind::Add || op.getKind() == ScatterKind::Mul) &&
         (element.isF16() || element.isBF16());
}

/// Not-a-number is greatest.
static Value isLess(CodeBuilder &b, Value x, Value y) {
  Type element = x.getType();
  if (!isa<FloatType>(element)) {
    auto predicate = element.isInteger(1) ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value less = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  Value xIsNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, x, x);
  Value yIsNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
  return arith::OrIOp::create(b, less, arith::AndIOp::create(b, xIsNumber, yIsNaN));
}

Value isBefore(CodeBuilder &b, bool descending, SortEntry x, SortEntry y) {
  Value less = descending ? isLess(b, y.value, x.value) : isLess(b, x.value, y.value);
  Value greater = descending ? isLess(b, x.value, y.value) : isLess(b, y.value, x.value);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x.index, y.index);
  Value equal = arith::XOrIOp::create(b, arith::OrIOp::create(b, less, greater), b.number(b.getI1Type(), 1));
  return arith::OrIOp::create(b, less, arith::AndIOp::create(b, equal, isFirst));
}

} // namespace spmd::kernel
