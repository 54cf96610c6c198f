//===- NarrowFloats.cpp - arithmetic on f16 and bf16 ----------------------===//

#include "NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// `type` with the element type `element`.
static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

//===----------------------------------------------------------------------===//
// Arithmetic in f32
//===----------------------------------------------------------------------===//

/// Whether `op` computes on a narrow type, rather than moves a value or converts between it and f32.
static bool computesNarrow(Operation *op) {
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp>(op))
    return false;
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && (getElementTypeOrSelf(op->getOperand(0).getType()).isF32() ||
                                                  getElementTypeOrSelf(op->getResult(0).getType()).isF32()))
    return false;
  return llvm::any_of(op->getOperandTypes(), isNarrow) || llvm::any_of(op->getResultTypes(), isNarrow);
}

static void widen(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto widened = [&](Type type) { return isNarrow(type) ? withElement(type, b.getF32Type()) : type; };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(
        isNarrow(operand.getType()) ? Value(arith::ExtFOp::create(b, widened(operand.getType()), operand)) : operand);
  Type type = op->getResult(0).getType();
  Value result;
  if (auto truncation = dyn_cast<arith::TruncFOp>(op)) // from f64: through f32, as PyTorch does
    result = arith::TruncFOp::create(b, widened(type), operands[0]);
  else if (isa<arith::ExtFOp>(op)) // to f64
    result = arith::ExtFOp::create(b, type, operands[0]);
  else
    result =
        b.create(OperationState(op->getLoc(), op->getName(), operands, {widened(type)}, op->getAttrs()))->getResult(0);
  if (isNarrow(type))
    result = arith::TruncFOp::create(b, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

void widenNarrowFloats(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (computesNarrow(op))
      ops.push_back(op);
  });
  llvm::for_each(ops, widen);
}

//===----------------------------------------------------------------------===//
// Narrow floats as i16
//===----------------------------------------------------------------------===//

namespace {

/// Conversions on values of one shape, as arithmetic on words of 32 bits.
class Conversion {
public:
  Conversion(ImplicitLocOpBuilder &b, Type like)
      : b(b), i16(withElement(like, b.getI16Type())), i32(withElement(like, b.getI32Type())),
        f32(withElement(like, b.getF32Type())) {}

  /// The f32 of a narrow number's bits (i16).
  Value extend(Value half, bool isBF16) {
    Value word = arith::ExtUIOp::create(b, i32, half);
    return isBF16 ? toFloat(shiftLeft(word, 16)) : extendF16(word);
  }

  /// The bits (i16) of the narrow number next to `x`, the even one of two.
  Value truncate(Value x, bool isBF16) {
    return arith::TruncIOp::create(b, i16, isBF16 ? truncateToBF16(x) : truncateToF16(x));
  }

private:
  /// Half of the last place that is kept is added, less one where that place is even; a carry goes into the exponent,
  /// and from the largest number to infinity. A NaN could carry too, so it is cut and made quiet.
  Value truncateToBF16(Value x) {
    Value word = toBits(x), cut = shiftRight(word, 16);
    Value rounded = shiftRight(add(word, add(bitAnd(cut, 1), constant(0x7fff))), 16);
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
    return select(isNan, bitOr(cut, constant(0x40)), rounded);
  }

  /// The same for 10 bits of fraction with the exponent's bias changed. Below 2^-14 the sum with a number whose last
  /// place is 2^-24 rounds; from 2^16 on all is infinity.
  Value truncateToF16(Value x) {
    Value word = toBits(x), sign = shiftRight(bitAnd(word, 0x80000000), 16), magnitude = bitAnd(word, 0x7fffffff);
    Value isOdd = bitAnd(shiftRight(magnitude, 13), 1);
    Value normal = shiftRight(add(magnitude, add(isOdd, constant((15 - 127) * (1 << 23) + 0xfff))), 13);
    constexpr int32_t kHalf = 126 << 23;
    Value sum = arith::AddFOp::create(b, toFloat(magnitude), toFloat(constant(kHalf)));
    Value subnormal = add(toBits(sum), constant(-kHalf));
    Value number = select(isBelow(magnitude, 113 << 23), subnormal, normal);
    Value isFinite = isBelow(magnitude, 143 << 23);
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
    return bitOr(sign, select(isFinite, number, select(isNan, constant(0x7e00), constant(0x7c00))));
  }

  /// The number 2^112 times too small, then the product, which is exact.
  Value extendF16(Value word) {
    Value sign = shiftLeft(bitAnd(word, 0x8000), 16), magnitude = bitAnd(word, 0x7fff);
    Value small = toFloat(shiftLeft(magnitude, 13));
    Value number = toBits(arith::MulFOp::create(b, small, toFloat(constant((127 + 112) << 23))));
    Value special = bitOr(shiftLeft(magnitude, 13), constant(0x7f800000));
    return toFloat(bitOr(sign, select(isBelow(magnitude, 0x7c00), number, special)));
  }

  Value constant(int32_t value) {
    if (auto vector = dyn_cast<VectorType>(i32))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, value));
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value bitAnd(Value x, uint32_t mask) { return arith::AndIOp::create(b, x, constant(static_cast<int32_t>(mask))); }
  Value bitOr(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value shiftLeft(Value x, int32_t by) { return arith::ShLIOp::create(b, x, constant(by)); }
  Value shiftRight(Value x, int32_t by) { return arith::ShRUIOp::create(b, x, constant(by)); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value isBelow(Value x, int32_t bound) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, constant(bound));
  }
  Value toBits(Value x) { return arith::BitcastOp::create(b, i32, x); }
  Value toFloat(Value x) { return arith::BitcastOp::create(b, f32, x); }

  ImplicitLocOpBuilder &b;
  Type i16, i32, f32;
};

} // namespace

/// Replaces `op`, a conversion between f32 and a narrow type, leaving bit casts between that type and i16.
static void expandConversion(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value in = op->getOperand(0);
  Type to = op->getResult(0).getType();
  Conversion conversion(b, to);
  Value result;
  if (isa<arith::ExtFOp>(op)) {
    Value half = arith::BitcastOp::create(b, withElement(to, b.getI16Type()), in);
    result = conversion.extend(half, getElementTypeOrSelf(in.getType()).isBF16());
  } else {
    result = arith::BitcastOp::create(b, to, conversion.truncate(in, getElementTypeOrSelf(to).isBF16()));
  }
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

void expandNarrowFloats(ModuleOp module) {
  SmallVector<Operation *> conversions;
  module.walk([&](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        (isNarrow(op->getOperand(0).getType()) || isNarrow(op->getResult(0).getType())))
      conversions.push_back(op);
  });
  llvm::for_each(conversions, expandConversion);

  Type i16 = IntegerType::get(module.getContext(), 16);
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](FloatType type) -> std::optional<Type> { return isNarrow(type) ? std::optional<Type>(i16) : std::nullopt; });
  replacer.addReplacement([&](FloatAttr value) -> std::optional<Attribute> {
    if (!isNarrow(value.getType()))
      return std::nullopt;
    return IntegerAttr::get(i16, value.getValue().bitcastToAPInt());
  });
  replacer.addReplacement([&](DenseElementsAttr values) -> std::optional<Attribute> {
    if (!isNarrow(values.getElementType()))
      return std::nullopt;
    return values.bitcast(i16);
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  // Bits of what has become bits.
  module.walk([](arith::BitcastOp op) {
    if (op.getIn().getType() != op.getType())
      return;
    op.getResult().replaceAllUsesWith(op.getIn());
    op.erase();
  });
}

} // namespace spmd::kernel
