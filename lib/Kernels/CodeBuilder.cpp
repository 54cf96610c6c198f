//===- CodeBuilder.cpp - values, memory and loops of a kernel -------------===//

#include "CodeBuilder.h"
#include "dialects/Kernel/ArgumentType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

Type getWideType(Type element, int64_t width) {
  if (element.isIndex())
    element = IntegerType::get(element.getContext(), 64);
  element = getArgumentType(element);
  return width == 1 ? element : VectorType::get({width}, element);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value CodeBuilder::i64(int64_t value) {
  Value &known = integers[value];
  if (!known) {
    // At the entry, where every use can see it.
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(entry);
    known = constant(getI64IntegerAttr(value));
  }
  return known;
}

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value CodeBuilder::add(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i64(*x + *y);
  if (x == 0)
    return b;
  if (y == 0)
    return a;
  return arith::AddIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}

Value CodeBuilder::sub(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i64(*x - *y);
  if (y == 0)
    return a;
  return arith::SubIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}

Value CodeBuilder::mul(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i64(*x * *y);
  if (x == 0 || y == 0)
    return i64(0);
  if (x == 1)
    return b;
  if (y == 1)
    return a;
  return arith::MulIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}

Value CodeBuilder::floorDiv(Value a, int64_t b) {
  if (b == 1)
    return a;
  if (auto x = getConstant(a))
    return i64(llvm::divideFloorSigned(*x, b));
  if (llvm::isPowerOf2_64(b))
    return arith::ShRSIOp::create(*this, a, i64(llvm::Log2_64(b)));
  // (a - (a < 0 ? b - 1 : 0)) / b, truncated.
  Value negative = arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, i64(0));
  Value shift = arith::SelectOp::create(*this, negative, i64(b - 1), i64(0));
  return arith::DivSIOp::create(*this, sub(a, shift), i64(b));
}

Value CodeBuilder::mod(Value a, int64_t b) {
  if (b == 1)
    return i64(0);
  if (auto x = getConstant(a))
    return i64(llvm::mod(*x, b));
  if (llvm::isPowerOf2_64(b))
    return arith::AndIOp::create(*this, a, i64(b - 1));
  return sub(a, mul(floorDiv(a, b), b));
}

Value CodeBuilder::min(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  return x && y ? i64(std::min(*x, *y)) : Value(arith::MinSIOp::create(*this, a, b));
}

Value CodeBuilder::max(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  return x && y ? i64(std::max(*x, *y)) : Value(arith::MaxSIOp::create(*this, a, b));
}

Value CodeBuilder::affine(AffineExpr expr, ArrayRef<Value> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return getCoordinate(symbol.getPosition());
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return i64(c.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = affine(binary.getLHS(), dims);
  if (expr.getKind() == AffineExprKind::Add)
    return add(lhs, affine(binary.getRHS(), dims));
  if (expr.getKind() == AffineExprKind::Mul)
    return mul(lhs, affine(binary.getRHS(), dims));
  // The verifier of AffineMap allows only positive constants as divisors in a pure affine expression.
  int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  if (expr.getKind() == AffineExprKind::Mod)
    return mod(lhs, divisor);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return floorDiv(lhs, divisor);
  return floorDiv(add(lhs, divisor - 1), divisor);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type getStoredType(Type element) {
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : getArgumentType(element);
}

Value CodeBuilder::address(Value pointer, Type element, Value index) {
  return LLVM::GEPOp::create(*this, pointer.getType(), getStoredType(element), pointer, ValueRange(index));
}

int64_t getStoredBytes(Type element) {
  Type stored = getStoredType(element);
  return isa<LLVM::LLVMPointerType>(stored) ? 8 : stored.getIntOrFloatBitWidth() / 8;
}

Value CodeBuilder::load(Value pointer, Type element, Value index, int64_t width, int64_t alignment) {
  Type stored = getStoredType(element);
  Value value =
      LLVM::LoadOp::create(*this, getWideType(stored, width), address(pointer, element, index),
                           alignment ? alignment : getStoredBytes(stored));
  if (!element.isInteger(1))
    return value;
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, value, number(value.getType(), 0));
}

void CodeBuilder::store(Value value, Value pointer, Value index, int64_t alignment, bool pastCaches) {
  Type element = getElementTypeOrSelf(value.getType());
  Type stored = getStoredType(element);
  if (element.isInteger(1)) {
    auto vector = dyn_cast<VectorType>(value.getType());
    value = arith::ExtUIOp::create(*this, getWideType(stored, vector ? vector.getNumElements() : 1), value);
  }
  LLVM::StoreOp::create(*this, value, address(pointer, element, index), alignment ? alignment : getStoredBytes(stored),
                        /*isVolatile=*/false, /*isNonTemporal=*/pastCaches);
}

//===----------------------------------------------------------------------===//
// Scalars and vectors
//===----------------------------------------------------------------------===//

Value CodeBuilder::constant(TypedAttr value) { return arith::ConstantOp::create(*this, value); }

Value CodeBuilder::number(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr scalar = isa<FloatType>(element) ? TypedAttr(getFloatAttr(element, value))
                                             : TypedAttr(getIntegerAttr(element, static_cast<int64_t>(value)));
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, Attribute(scalar)));
  return constant(scalar);
}

Value CodeBuilder::broadcast(Value value, int64_t width) {
  if (width == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(*this, VectorType::get({width}, value.getType()), value);
}

Value CodeBuilder::pack(ArrayRef<Value> lanes) {
  if (lanes.size() == 1)
    return lanes.front();
  auto type = VectorType::get({static_cast<int64_t>(lanes.size())}, lanes.front().getType());
  return vector::FromElementsOp::create(*this, type, lanes);
}

Value CodeBuilder::lane(Value vector, int64_t i) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return vector::ExtractOp::create(*this, vector, i);
}

Value CodeBuilder::combine(ReduceKind kind, Value a, Value b) {
  Type element = getElementTypeOrSelf(a.getType());
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  // `a` where it is the larger (smaller) or NaN, else `b`, which may be NaN: two instructions and a blend, where
  // arith.maximumf costs twice that for the sign of zero.
  auto choose = [&](arith::CmpFPredicate better) -> Value {
    Value isBetter = arith::CmpFOp::create(*this, better, a, b);
    Value best = arith::SelectOp::create(*this, isBetter, a, b);
    Value isNaN = arith::CmpFOp::create(*this, arith::CmpFPredicate::UNO, a, a);
    return arith::SelectOp::create(*this, isNaN, a, best);
  };
  switch (kind) {
  case ReduceKind::Add:
    return isFloat ? Value(arith::AddFOp::create(*this, a, b)) : Value(arith::AddIOp::create(*this, a, b));
  case ReduceKind::Max:
    if (isBool)
      return arith::OrIOp::create(*this, a, b);
    return isFloat ? choose(arith::CmpFPredicate::OGT) : Value(arith::MaxSIOp::create(*this, a, b));
  case ReduceKind::Min:
    if (isBool)
      return arith::AndIOp::create(*this, a, b);
    return isFloat ? choose(arith::CmpFPredicate::OLT) : Value(arith::MinSIOp::create(*this, a, b));
  case ReduceKind::Mul:
    return isFloat ? Value(arith::MulFOp::create(*this, a, b)) : Value(arith::MulIOp::create(*this, a, b));
  }
  llvm_unreachable("all kinds are handled");
}

Value CodeBuilder::neutral(ReduceKind kind, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (kind == ReduceKind::Add)
    return number(type, 0);
  if (kind == ReduceKind::Mul)
    return number(type, 1);
  bool isMax = kind == ReduceKind::Max;
  if (isa<FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    return number(type, isMax ? -infinity : infinity);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  APInt value = bits == 1 ? APInt(1, isMax ? 0 : 1)
                : isMax   ? APInt::getSignedMinValue(bits)
                          : APInt::getSignedMaxValue(bits);
  TypedAttr scalar = getIntegerAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, Attribute(scalar)));
  return constant(scalar);
}

Value CodeBuilder::reduceLanes(ReduceKind kind, Value vector) {
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  for (; width > 1; width /= 2) {
    auto low = llvm::to_vector(llvm::seq<int64_t>(0, width / 2));
    auto high = llvm::to_vector(llvm::seq<int64_t>(width / 2, width));
    vector = combine(kind, vector::ShuffleOp::create(*this, vector, vector, low),
                     vector::ShuffleOp::create(*this, vector, vector, high));
  }
  return lane(vector, 0);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

SmallVector<Value> CodeBuilder::loop(Value low, Value high, int64_t step, ValueRange inits, LoopBody body) {
  auto x = getConstant(low), y = getConstant(high);
  if (x && y && *x >= *y)
    return SmallVector<Value>(inits);
  auto loop = scf::ForOp::create(*this, low, high, i64(step), inits);
  {
    OpBuilder::InsertionGuard guard(*this);
    Block *block = loop.getBody();
    // Without carried values the builder has put a terminator there already.
    if (!block->empty())
      block->back().erase();
    setInsertionPointToEnd(block);
    SmallVector<Value> carried = body(loop.getInductionVar(), loop.getRegionIterArgs());
    scf::YieldOp::create(*this, carried);
  }
  return SmallVector<Value>(loop.getResults());
}

void CodeBuilder::loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(low, high, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void CodeBuilder::when(Value condition, llvm::function_ref<void()> then) {
  auto choice = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(choice.thenBlock());
  then();
}

void CodeBuilder::choose(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  auto choice = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(choice.thenBlock());
  then();
  setInsertionPointToStart(choice.elseBlock());
  otherwise();
}

SmallVector<Value> CodeBuilder::chooseValues(Value condition, Values then, Values otherwise) {
  OpBuilder::InsertionGuard guard(*this);
  auto build = [&](Values values) {
    return [this, values](OpBuilder &inner, Location) {
      restoreInsertionPoint(inner.saveInsertionPoint());
      scf::YieldOp::create(*this, values());
    };
  };
  OpBuilder outer(*this);
  return llvm::to_vector(
      ValueRange(scf::IfOp::create(outer, getLoc(), condition, build(then), build(otherwise)).getResults()));
}

} // namespace spmd::kernel
