//===- ScalarBuilder.cpp - scalar arithmetic by name ----------------------===//

#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace spmd::aten {

Type getValueType(Type type) {
  return type.isUnsignedInteger() ? IntegerType::get(type.getContext(), 2 * type.getIntOrFloatBitWidth()) : type;
}

Type getComputeType(Type type) {
  return type.isF16() || type.isBF16() ? Type(Float32Type::get(type.getContext())) : getValueType(type);
}

/// The type in which PyTorch compares its operands: that of the operand of the highest category (bool, integer,
/// float), among those of one category the one that has dims.
static Type getComparisonType(Operation *op) {
  Type best;
  auto rankOf = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    int category = isa<FloatType>(element) ? 2 : element.isInteger(1) ? 0 : 1;
    return std::make_tuple(category, tensor.getRank() > 0, element.getIntOrFloatBitWidth());
  };
  for (Type type : op->getOperandTypes())
    if (!best || rankOf(type) > rankOf(best))
      best = type;
  Type element = cast<RankedTensorType>(best).getElementType();
  Attribute scalar = op->getAttr("other");
  if (scalar && isa<FloatAttr>(scalar) && !isa<FloatType>(element))
    return Float32Type::get(op->getContext());
  if (scalar && element.isInteger(1) && isa<IntegerAttr>(scalar) && !isa<BoolAttr>(scalar))
    return IntegerType::get(op->getContext(), 64);
  return getComputeType(element);
}

Type getBodyType(Operation *op, ComputeIn kind) {
  if (kind == ComputeIn::operands)
    return getComparisonType(op);
  Type result = typeOf(op->getResult(0)).getElementType();
  return kind == ComputeIn::result ? getComputeType(result) : result;
}

double getScalarValue(Attribute attr) {
  if (auto boolean = dyn_cast<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return static_cast<double>(integer.getInt());
  return cast<FloatAttr>(attr).getValueAsDouble();
}

/// `value` modulo the range of `type`. A float goes through an integer that holds more than one of that range.
static Value castToUnsigned(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type result = getValueType(type);
  if (isa<FloatType>(value.getType()))
    value = arith::FPToSIOp::create(b, b.getI32Type(), value);
  bool isTruth = value.getType().isInteger(1);
  value = castScalar(b, value, result);
  if (isTruth)
    return value;
  int64_t largest = (int64_t(1) << type.getIntOrFloatBitWidth()) - 1;
  return arith::AndIOp::create(b, value, arith::ConstantOp::create(b, b.getIntegerAttr(result, largest)));
}

Value castScalar(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type from = value.getType();
  if (type.isUnsignedInteger())
    return castToUnsigned(b, value, type);
  if (from == type)
    return value;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(type);
  if (type.isInteger(1)) {
    if (fromFloat) {
      Value zero = arith::ConstantOp::create(b, b.getFloatAttr(from, 0.0));
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    }
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(from, 0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (fromFloat && toFloat) {
    if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, type, value);
    if (from.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(b, type, value);
    // f16 and bf16: through f32.
    return castScalar(b, castScalar(b, value, b.getF32Type()), type);
  }
  if (fromFloat)
    return arith::FPToSIOp::create(b, type, value);
  if (toFloat) {
    if (from.isInteger(1))
      return arith::UIToFPOp::create(b, type, value);
    return arith::SIToFPOp::create(b, type, value);
  }
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, type, value);
  return arith::TruncIOp::create(b, type, value);
}

Value ScalarBodyFrame::result(Value value) { return castScalar(s.b, value, typeOf(op->getResult(0)).getElementType()); }

Value ScalarBuilder::constant(double value) {
  if (isFloat())
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  if (type.isInteger(1))
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value != 0));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Value ScalarBuilder::constant(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  if (isFloat() || !integer || type.isInteger(1) || isa<BoolAttr>(value))
    return constant(getScalarValue(value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, integer.getInt()));
}

Value ScalarBuilder::scaled(Value x, Attribute alpha) {
  return getScalarValue(alpha) == 1 ? x : mul(constant(alpha), x);
}

Value ScalarBuilder::scaledConstant(Attribute value, Attribute alpha) {
  auto number = dyn_cast<IntegerAttr>(value), factor = dyn_cast<IntegerAttr>(alpha);
  if (isFloat() || !number || !factor || isa<BoolAttr>(value) || isa<BoolAttr>(alpha))
    return constant(getScalarValue(value) * getScalarValue(alpha));
  auto product = static_cast<uint64_t>(number.getInt()) * static_cast<uint64_t>(factor.getInt());
  return constant(Attribute(b.getI64IntegerAttr(static_cast<int64_t>(product))));
}

Value ScalarBuilder::add(Value x, Value y) {
  if (isFloat())
    return arith::AddFOp::create(b, x, y);
  if (type.isInteger(1)) // the sum of truth values is one
    return arith::OrIOp::create(b, x, y);
  return arith::AddIOp::create(b, x, y);
}

Value ScalarBuilder::sub(Value x, Value y) {
  if (isFloat())
    return arith::SubFOp::create(b, x, y);
  return arith::SubIOp::create(b, x, y);
}

Value ScalarBuilder::mul(Value x, Value y) {
  if (isFloat())
    return arith::MulFOp::create(b, x, y);
  return arith::MulIOp::create(b, x, y);
}

Value ScalarBuilder::divisor(Value y) {
  Value traps = arith::OrIOp::create(b, compare("eq", y, 0), compare("eq", y, -1));
  return arith::SelectOp::create(b, traps, constant(1), y);
}

Value ScalarBuilder::div(Value x, Value y) {
  if (isFloat())
    return arith::DivFOp::create(b, x, y);
  Value quotient = arith::DivSIOp::create(b, x, divisor(y));
  quotient = select(compare("eq", y, -1), neg(x), quotient);
  return select(compare("eq", y, 0), constant(0), quotient);
}

Value ScalarBuilder::fmod(Value x, Value y) {
  if (isFloat())
    return arith::RemFOp::create(b, x, y);
  return arith::RemSIOp::create(b, x, divisor(y));
}

Value ScalarBuilder::remainder(Value x, Value y) {
  Value rest = fmod(x, y), zero = constant(0);
  Value otherSign = arith::XOrIOp::create(b, compare("lt", rest, zero), compare("lt", y, zero));
  Value wraps = arith::AndIOp::create(b, compare("ne", rest, zero), otherSign);
  return select(wraps, add(rest, y), rest);
}

/// As c10::div_floor_floating: from the remainder, so that no quotient rounds up across an integer.
Value ScalarBuilder::floorDiv(Value x, Value y) {
  Value rest = fmod(x, y), zero = constant(0);
  Value otherSign = arith::XOrIOp::create(b, compare("lt", rest, zero), compare("lt", y, zero));
  Value below = arith::AndIOp::create(b, compare("ne", rest, zero), otherSign);
  if (!isFloat()) {
    Value quotient = div(x, y);
    return select(below, sub(quotient, constant(1)), quotient);
  }
  Value quotient = div(sub(x, rest), y);
  quotient = select(below, sub(quotient, constant(1)), quotient);
  Value down = floor(quotient);
  Value rounded = select(compare("gt", sub(quotient, down), 0.5), add(down, constant(1)), down);
  rounded = select(compare("eq", quotient, zero), copySign(zero, div(x, y)), rounded);
  return select(compare("eq", y, zero), div(x, y), rounded);
}

Value ScalarBuilder::copySign(Value x, Value y) { return math::CopySignOp::create(b, x, y); }

Value ScalarBuilder::neg(Value x) {
  if (isFloat())
    return arith::NegFOp::create(b, x);
  return arith::SubIOp::create(b, constant(0), x);
}

Value ScalarBuilder::abs(Value x) {
  if (isFloat())
    return math::AbsFOp::create(b, x);
  return math::AbsIOp::create(b, x);
}

/// `x` unless `y` is better ("lt": larger, "gt": smaller), and what is not a number where one is. Of equal ones it is `x`,
/// which two zeros show: so PyTorch's relu and clamp keep -0.
static Value choose(ScalarBuilder &s, StringRef better, Value x, Value y) {
  Attribute limit;
  if (matchPattern(y, m_Constant(&limit)))
    if (auto number = dyn_cast<FloatAttr>(limit); number && !number.getValue().isNaN())
      return s.select(s.compare(better, x, y), y, x);
  Value isAsGood = s.compare(better == "lt" ? "ge" : "le", x, y);
  return s.select(s.bitOr(isAsGood, s.isNan(x)), x, y);
}

Value ScalarBuilder::max(Value x, Value y) {
  if (isFloat())
    return choose(*this, "lt", x, y);
  if (type.isInteger(1))
    return arith::OrIOp::create(b, x, y);
  return arith::MaxSIOp::create(b, x, y);
}

Value ScalarBuilder::min(Value x, Value y) {
  if (isFloat())
    return choose(*this, "gt", x, y);
  if (type.isInteger(1))
    return arith::AndIOp::create(b, x, y);
  return arith::MinSIOp::create(b, x, y);
}

Value ScalarBuilder::exp(Value x) { return math::ExpOp::create(b, x); }
Value ScalarBuilder::exp2(Value x) { return math::Exp2Op::create(b, x); }
Value ScalarBuilder::expm1(Value x) { return math::ExpM1Op::create(b, x); }
Value ScalarBuilder::log(Value x) { return math::LogOp::create(b, x); }
Value ScalarBuilder::log2(Value x) { return math::Log2Op::create(b, x); }
Value ScalarBuilder::log10(Value x) { return math::Log10Op::create(b, x); }
Value ScalarBuilder::log1p(Value x) { return math::Log1pOp::create(b, x); }
Value ScalarBuilder::sqrt(Value x) { return math::SqrtOp::create(b, x); }
Value ScalarBuilder::sin(Value x) { return math::SinOp::create(b, x); }
Value ScalarBuilder::cos(Value x) { return math::CosOp::create(b, x); }
Value ScalarBuilder::tan(Value x) { return math::TanOp::create(b, x); }
Value ScalarBuilder::asin(Value x) { return math::AsinOp::create(b, x); }
Value ScalarBuilder::acos(Value x) { return math::AcosOp::create(b, x); }
Value ScalarBuilder::atan(Value x) { return math::AtanOp::create(b, x); }
Value ScalarBuilder::sinh(Value x) { return math::SinhOp::create(b, x); }
Value ScalarBuilder::cosh(Value x) { return math::CoshOp::create(b, x); }
Value ScalarBuilder::tanh(Value x) { return math::TanhOp::create(b, x); }
Value ScalarBuilder::asinh(Value x) { return math::AsinhOp::create(b, x); }
Value ScalarBuilder::acosh(Value x) { return math::AcoshOp::create(b, x); }
Value ScalarBuilder::atanh(Value x) { return math::AtanhOp::create(b, x); }
Value ScalarBuilder::erf(Value x) { return math::ErfOp::create(b, x); }
Value ScalarBuilder::erfc(Value x) { return math::ErfcOp::create(b, x); }

Value ScalarBuilder::pow(Value x, Value y) {
  if (isFloat())
    return math::PowFOp::create(b, x, y);
  if (type.isInteger(1))
    return bitOr(x, logicalNot(y));
  // By squaring; products wrap around, as PyTorch's do.
  Value one = constant(1), result = one, square = x;
  llvm::APInt known;
  if (matchPattern(y, m_ConstantInt(&known)) && known.isNonNegative()) {
    for (unsigned bit = 0, bits = known.getActiveBits(); bit < bits; ++bit) {
      result = known[bit] ? mul(result, square) : result;
      if (bit + 1 < bits)
        square = mul(square, square);
    }
    return result;
  }
  for (int bit = 0; bit < 6; ++bit) {
    Value isSet = truth(bitAnd(shiftRight(y, constant(bit)), one));
    result = select(isSet, mul(result, square), result);
    square = mul(square, square);
  }
  // The rest is square to the power n = y / 64. Of even numbers, 0. Of odd ones square = 1 + 256 v, and of the binomial
  // series only 7 terms are not multiples of 2^64: C(n, k) 256^k v^k, where C(n, k) has the odd part of k! divided out
  // by its inverse, and the even part from 256^k.
  constexpr int evenPart[] = {0, 0, 1, 1, 3, 3, 4, 4};
  constexpr uint64_t oddPart[] = {1, 1, 1, 3, 3, 15, 45, 315};
  int width = type.getIntOrFloatBitWidth();
  Value n = shiftRight(y, constant(6)), v = width > 8 ? shiftRight(sub(square, one), constant(8)) : Value();
  Value factors = one, power = one, series = one;
  for (int k = 1; k < 8 && 8 * k < width; ++k) {
    uint64_t inverse = 1;
    for (int i = 0; i < 6; ++i)
      inverse *= 2 - oddPart[k] * inverse; // Newton's, each time twice as many bits
    factors = mul(factors, sub(n, constant(k - 1)));
    power = mul(power, v);
    int64_t factor = llvm::SignExtend64(inverse << (8 * k - evenPart[k]), width);
    series = add(series, mul(mul(factors, power), constant(b.getIntegerAttr(type, factor))));
  }
  Value isOdd = truth(bitAnd(x, one));
  result = select(compare("gt", n, 0), select(isOdd, mul(result, series), constant(0)), result);
  // Inverses are 0, but for those of 1 and -1, which follow the exponent's parity.
  Value parity = select(truth(bitAnd(y, one)), x, one);
  Value inverse = select(compare("eq", abs(x), 1), parity, constant(0));
  return select(compare("lt", y, 0), inverse, result);
}

Value ScalarBuilder::atan2(Value y, Value x) { return math::Atan2Op::create(b, y, x); }

Value ScalarBuilder::floor(Value x) { return isFloat() ? math::FloorOp::create(b, x) : x; }
Value ScalarBuilder::ceil(Value x) { return isFloat() ? math::CeilOp::create(b, x) : x; }
Value ScalarBuilder::trunc(Value x) { return isFloat() ? math::TruncOp::create(b, x) : x; }
Value ScalarBuilder::round(Value x) { return isFloat() ? math::RoundEvenOp::create(b, x) : x; }

Value ScalarBuilder::sigmoid(Value x) {
  Value one = constant(1);
  return div(one, add(one, exp(neg(x))));
}

Value ScalarBuilder::compare(StringRef predicate, Value x, Value y) {
  if (isFloat()) {
    auto ordered = llvm::StringSwitch<arith::CmpFPredicate>(predicate)
                       .Case("eq", arith::CmpFPredicate::OEQ)
                       .Case("ne", arith::CmpFPredicate::UNE)
                       .Case("lt", arith::CmpFPredicate::OLT)
                       .Case("le", arith::CmpFPredicate::OLE)
                       .Case("gt", arith::CmpFPredicate::OGT)
                       .Default(arith::CmpFPredicate::OGE);
    return arith::CmpFOp::create(b, ordered, x, y);
  }
  bool isBool = type.isInteger(1);
  auto integer = llvm::StringSwitch<arith::CmpIPredicate>(predicate)
                     .Case("eq", arith::CmpIPredicate::eq)
                     .Case("ne", arith::CmpIPredicate::ne)
                     .Case("lt", isBool ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt)
                     .Case("le", isBool ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle)
                     .Case("gt", isBool ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                     .Default(isBool ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge);
  return arith::CmpIOp::create(b, integer, x, y);
}

Value ScalarBuilder::isNan(Value x) {
  if (isFloat())
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return arith::ConstantOp::create(b, b.getBoolAttr(false));
}

Value ScalarBuilder::compareInfinity(Value x, double infinity) {
  if (isFloat())
    return compare("eq", x, infinity);
  return arith::ConstantOp::create(b, b.getBoolAttr(false));
}

Value ScalarBuilder::isInfinite(Value x) { return compareInfinity(isFloat() ? abs(x) : x, INFINITY); }

Value ScalarBuilder::isNegative(Value x) {
  return compare("lt", isFloat() ? copySign(constant(1), x) : x, 0);
}

Value ScalarBuilder::logicalNot(Value x) {
  Value one = arith::ConstantOp::create(b, b.getIntegerAttr(b.getI1Type(), 1));
  return arith::XOrIOp::create(b, x, one);
}

Value ScalarBuilder::select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }

Value ScalarBuilder::bitAnd(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
Value ScalarBuilder::bitOr(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
Value ScalarBuilder::bitXor(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
Value ScalarBuilder::bitNot(Value x) { return arith::XOrIOp::create(b, x, constant(type.isInteger(1) ? 1 : -1)); }

/// Whether 0 <= by < width, and `by`, or 0 where it is not.
static std::pair<Value, Value> checkShift(ScalarBuilder &s, Value by) {
  Value zero = s.constant(0), width = s.constant(s.type.getIntOrFloatBitWidth());
  Value fits = s.bitAnd(s.compare("ge", by, zero), s.compare("lt", by, width));
  return {fits, s.select(fits, by, zero)};
}

Value ScalarBuilder::shiftLeft(Value x, Value by) {
  auto [fits, safe] = checkShift(*this, by);
  return select(fits, arith::ShLIOp::create(b, x, safe), constant(0));
}

Value ScalarBuilder::shiftRight(Value x, Value by) {
  auto [fits, safe] = checkShift(*this, by);
  Value sign = arith::ShRSIOp::create(b, x, constant(type.getIntOrFloatBitWidth() - 1));
  return select(fits, arith::ShRSIOp::create(b, x, safe), sign);
}

} // namespace spmd::aten
