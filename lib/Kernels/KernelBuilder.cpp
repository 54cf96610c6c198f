//===- KernelBuilder.cpp - builds the body of one kernel function ---------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

Type getWideType(Type element, int64_t width) {
  if (element.isIndex())
    element = IntegerType::get(element.getContext(), 64);
  return width == 1 ? element : VectorType::get({width}, element);
}

KernelBuilder::KernelBuilder(ModuleOp module, StringRef symbol, Operation *op, int64_t accumulators)
    : ImplicitLocOpBuilder(op->getLoc(), module.getContext()), numOperands(op->getNumOperands()),
      accumulators(accumulators) {
  setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  Type i64Type = getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), {pointer, pointer, i64Type, i64Type});
  function = LLVM::LLVMFuncOp::create(*this, symbol, type);
  Block *entry = function.addEntryBlock(*this);
  setInsertionPointToStart(entry);
  Value args = entry->getArgument(0);
  coords = entry->getArgument(1);
  begin = entry->getArgument(2);
  end = entry->getArgument(3);
  for (unsigned i = 0; i < numOperands + op->getNumResults(); ++i)
    pointers.push_back(LLVM::LoadOp::create(*this, pointer, address(args, pointer, i64(i)), /*alignment=*/8));
}

void KernelBuilder::finish() { LLVM::ReturnOp::create(*this, ValueRange()); }

Value KernelBuilder::getCoordinate(unsigned axis) {
  if (coordinates.size() <= axis)
    coordinates.resize(axis + 1);
  if (!coordinates[axis]) {
    // Right behind the pointers, where every use can see it.
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointAfterValue(pointers.back());
    coordinates[axis] = load(coords, getI64Type(), i64(axis));
  }
  return coordinates[axis];
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value KernelBuilder::i64(int64_t value) {
  Value &known = integers[value];
  if (!known) {
    // At the entry, where every use can see it.
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(&function.getBody().front());
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

Value KernelBuilder::add(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i64(*x + *y);
  if (x == 0)
    return b;
  if (y == 0)
    return a;
  return arith::AddIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}

Value KernelBuilder::sub(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i64(*x - *y);
  if (y == 0)
    return a;
  return arith::SubIOp::create(*this, a, b, arith::IntegerOverflowFlags::nsw);
}

Value KernelBuilder::mul(Value a, Value b) {
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

Value KernelBuilder::floorDiv(Value a, int64_t b) {
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

Value KernelBuilder::mod(Value a, int64_t b) {
  if (b == 1)
    return i64(0);
  if (auto x = getConstant(a))
    return i64(llvm::mod(*x, b));
  if (llvm::isPowerOf2_64(b))
    return arith::AndIOp::create(*this, a, i64(b - 1));
  return sub(a, mul(floorDiv(a, b), b));
}

Value KernelBuilder::min(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  return x && y ? i64(std::min(*x, *y)) : Value(arith::MinSIOp::create(*this, a, b));
}

Value KernelBuilder::max(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  return x && y ? i64(std::max(*x, *y)) : Value(arith::MaxSIOp::create(*this, a, b));
}

Value KernelBuilder::affine(AffineExpr expr, ArrayRef<Value> dims) {
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

/// Type of an element in memory.
static Type getStoredType(Type element) {
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

Value KernelBuilder::address(Value pointer, Type element, Value index) {
  return LLVM::GEPOp::create(*this, pointer.getType(), getStoredType(element), pointer, ValueRange(index));
}

static unsigned getAlignment(Type stored) {
  return isa<LLVM::LLVMPointerType>(stored) ? 8 : stored.getIntOrFloatBitWidth() / 8;
}

Value KernelBuilder::load(Value pointer, Type element, Value index, int64_t width) {
  Type stored = getStoredType(element);
  Value value =
      LLVM::LoadOp::create(*this, getWideType(stored, width), address(pointer, element, index), getAlignment(stored));
  if (!element.isInteger(1))
    return value;
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, value, number(value.getType(), 0));
}

void KernelBuilder::store(Value value, Value pointer, Value index) {
  Type element = getElementTypeOrSelf(value.getType());
  Type stored = getStoredType(element);
  if (element.isInteger(1)) {
    auto vector = dyn_cast<VectorType>(value.getType());
    value = arith::ExtUIOp::create(*this, getWideType(stored, vector ? vector.getNumElements() : 1), value);
  }
  LLVM::StoreOp::create(*this, value, address(pointer, element, index), getAlignment(stored));
}

Value KernelBuilder::stack(Type element, int64_t count) {
  Value size = i64(count);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointAfterValue(size);
  Type stored = getStoredType(element);
  stackBytes += count * getAlignment(stored);
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), stored, size, /*alignment=*/64);
}

Value KernelBuilder::table(DenseElementsAttr values) {
  std::string name = (function.getName() + "_table" + Twine(numTables++)).str();
  auto type = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPoint(function);
    LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, values, /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(*this, LLVM::LLVMPointerType::get(getContext()), name);
}

//===----------------------------------------------------------------------===//
// Scalars and vectors
//===----------------------------------------------------------------------===//

Value KernelBuilder::constant(TypedAttr value) { return arith::ConstantOp::create(*this, value); }

Value KernelBuilder::number(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr scalar = isa<FloatType>(element) ? TypedAttr(getFloatAttr(element, value))
                                             : TypedAttr(getIntegerAttr(element, static_cast<int64_t>(value)));
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(DenseElementsAttr::get(vector, Attribute(scalar)));
  return constant(scalar);
}

Value KernelBuilder::broadcast(Value value, int64_t width) {
  if (width == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(*this, VectorType::get({width}, value.getType()), value);
}

Value KernelBuilder::pack(ArrayRef<Value> lanes) {
  if (lanes.size() == 1)
    return lanes.front();
  auto type = VectorType::get({static_cast<int64_t>(lanes.size())}, lanes.front().getType());
  return vector::FromElementsOp::create(*this, type, lanes);
}

Value KernelBuilder::lane(Value vector, int64_t i) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return vector::ExtractOp::create(*this, vector, i);
}

Value KernelBuilder::combine(ReduceKind kind, Value a, Value b) {
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

Value KernelBuilder::neutral(ReduceKind kind, Type type) {
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

Value KernelBuilder::reduceLanes(ReduceKind kind, Value vector) {
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

SmallVector<Value> KernelBuilder::loop(Value low, Value high, int64_t step, ValueRange inits, LoopBody body) {
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

void KernelBuilder::loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(low, high, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

} // namespace spmd::kernel
