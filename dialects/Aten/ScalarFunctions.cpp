//===- ScalarFunctions.cpp - Longer bodies of pointwise ops ---------------===//

#include "dialects/Aten/ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <limits>
#include <utility>

using namespace mlir;

namespace spmd::aten {

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

constexpr double kTwoOverSqrtPi = M_2_SQRTPI;
constexpr double kGeluBeta = M_SQRT2 * kTwoOverSqrtPi * 0.5;
constexpr double kGeluKappa = 0.044715;

/// 1 + exp(-2 beta (x + kappa x^3)), the reciprocal of (1 + tanh(beta (x + kappa x^3))) / 2. The exponent's logarithm
/// of 2 is in the constants.
static Value geluDenominator(ScalarBuilder &s, Value x) {
  constexpr double kFactor = -2 * kGeluBeta * M_LOG2E;
  Value factor = s.add(s.constant(kFactor), s.mul(s.constant(kFactor * kGeluKappa), s.square(x)));
  return s.add(s.constant(1), s.exp2(s.mul(x, factor)));
}

/// Phi(x) = (1 + erf(x / sqrt 2)) / 2
static Value normalCdf(ScalarBuilder &s, Value x) {
  Value erf = s.erf(s.mul(x, s.constant(M_SQRT1_2)));
  return s.mul(s.constant(0.5), s.add(s.constant(1), erf));
}

Value gelu(ScalarBuilder &s, Value x, StringRef approximate) {
  if (approximate != "tanh")
    return s.mul(x, normalCdf(s, x));
  return s.div(x, geluDenominator(s, x));
}

Value geluBackward(ScalarBuilder &s, Value grad, Value x, StringRef approximate) {
  if (approximate != "tanh") {
    Value density = s.mul(s.exp(s.mul(s.constant(-0.5), s.square(x))), s.constant(kTwoOverSqrtPi * M_SQRT1_2 * 0.5));
    return s.mul(grad, s.add(normalCdf(s, x), s.mul(x, density)));
  }
  Value one = s.constant(1), gate = s.div(one, geluDenominator(s, x));
  Value innerDerivative =
      s.add(s.constant(2 * kGeluBeta), s.mul(s.constant(6 * kGeluBeta * kGeluKappa), s.square(x)));
  // gate (1 - gate) first: it is zero where what follows overflows.
  Value slope = s.mul(s.mul(s.mul(gate, s.sub(one, gate)), x), innerDerivative);
  return s.mul(grad, s.add(gate, slope));
}

Value siluBackward(ScalarBuilder &s, Value grad, Value x) {
  Value one = s.constant(1), sigmoid = s.sigmoid(x);
  Value slope = s.add(one, s.mul(x, s.sub(one, sigmoid)));
  return s.mul(s.mul(grad, sigmoid), slope);
}

Value mish(ScalarBuilder &s, Value x) { return s.mul(x, s.tanh(s.log1p(s.exp(x)))); }

Value mishBackward(ScalarBuilder &s, Value grad, Value x) {
  Value one = s.constant(1), sigmoid = s.sigmoid(x), tanh = s.tanh(s.log1p(s.exp(x)));
  Value tanhDerivative = s.sub(one, s.square(tanh));
  return s.mul(grad, s.add(tanh, s.mul(s.mul(x, sigmoid), tanhDerivative)));
}

Value softplus(ScalarBuilder &s, Value x, Attribute beta, Attribute threshold) {
  Value b = s.constant(beta), scaled = s.mul(x, b);
  Value soft = s.div(s.log1p(s.exp(scaled)), b);
  return s.select(s.compare("gt", scaled, s.constant(threshold)), x, soft);
}

Value softplusBackward(ScalarBuilder &s, Value grad, Value x, Attribute beta, Attribute threshold) {
  Value scaled = s.mul(x, s.constant(beta)), z = s.exp(scaled);
  Value soft = s.div(s.mul(grad, z), s.add(z, s.constant(1)));
  return s.select(s.compare("gt", scaled, s.constant(threshold)), grad, soft);
}

Value elu(ScalarBuilder &s, Value x, double alpha, double scale, double inputScale) {
  Value negative = s.mul(s.expm1(s.mul(x, s.constant(inputScale))), s.constant(alpha * scale));
  return s.select(s.compare("le", x, 0), negative, s.mul(x, s.constant(scale)));
}

Value eluBackward(ScalarBuilder &s, Value grad, Value x, double alpha, double scale, double inputScale, bool isResult) {
  Value inner = s.constant(inputScale), outer = s.constant(alpha * scale);
  Value negative = isResult
                       ? s.mul(s.mul(grad, inner), s.add(x, outer))
                       : s.mul(s.mul(s.mul(grad, inner), outer), s.exp(s.mul(x, inner)));
  return s.select(s.compare("le", x, 0), negative, s.mul(grad, s.constant(scale)));
}

Value logSigmoidBackward(ScalarBuilder &s, Value grad, Value x) {
  Value zero = s.constant(0), one = s.constant(1), isNegative = s.compare("lt", x, zero);
  Value largest = s.select(isNegative, one, zero), sign = s.select(isNegative, one, s.constant(-1));
  Value z = s.exp(s.neg(s.abs(x)));
  return s.mul(grad, s.sub(largest, s.mul(sign, s.div(z, s.add(one, z)))));
}

Value relu6(ScalarBuilder &s, Value x) { return clampTo(s, x, s.constant(0), s.constant(6)); }

Value hardtanhBackward(ScalarBuilder &s, Value grad, Value x, Attribute low, Attribute high) {
  Value isOutside = s.bitOr(s.compare("le", x, s.constant(low)), s.compare("ge", x, s.constant(high)));
  return s.select(isOutside, s.constant(0), grad);
}

Value hardswishBackward(ScalarBuilder &s, Value grad, Value x) {
  Value inside = s.mul(grad, s.add(s.div(x, s.constant(3)), s.constant(0.5)));
  Value upper = s.select(s.compare("lt", x, 3), inside, grad);
  return s.select(s.compare("le", x, -3), s.constant(0), upper);
}

Value hardsigmoidBackward(ScalarBuilder &s, Value grad, Value x) {
  Value isInside = s.bitAnd(s.compare("gt", x, -3), s.compare("lt", x, 3));
  return s.select(isInside, s.div(grad, s.constant(6)), s.constant(0));
}

Value softshrink(ScalarBuilder &s, Value x, Attribute lambda) {
  Value l = s.constant(lambda);
  Value below = s.select(s.compare("lt", x, s.neg(l)), s.add(x, l), s.mul(x, s.constant(0)));
  return s.select(s.compare("gt", x, l), s.sub(x, l), below);
}

Value outside(ScalarBuilder &s, Value x, Attribute lambda, Value value) {
  Value l = s.constant(lambda);
  Value isInside = s.bitAnd(s.compare("ge", x, s.neg(l)), s.compare("le", x, l));
  return s.select(isInside, s.constant(0), value);
}

Value logit(ScalarBuilder &s, Value x, double eps) {
  if (eps >= 0)
    x = clampTo(s, x, s.constant(eps), s.constant(1 - eps));
  return s.log(s.div(x, s.sub(s.constant(1), x)));
}

Value logitBackward(ScalarBuilder &s, Value grad, Value x, double eps) {
  Value slope = s.div(grad, s.mul(x, s.sub(s.constant(1), x)));
  double low = eps < 0 ? 0 : eps, outside = eps < 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  Value isOutside = s.bitOr(s.compare("lt", x, low), s.compare("gt", x, 1 - low));
  return s.select(isOutside, s.constant(outside), slope);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value power(ScalarBuilder &s, Value x, Attribute exponent) {
  double value = getScalarValue(exponent);
  if (value == 0)
    return s.constant(1);
  if (value == 1)
    return x;
  if (value == 2)
    return s.square(x);
  if (value == 3)
    return s.mul(s.square(x), x);
  if (value == 0.5)
    return s.sqrt(x);
  if (value == -0.5)
    return s.div(s.constant(1), s.sqrt(x));
  if (value == -1)
    return s.div(s.constant(1), x);
  if (value == -2)
    return s.div(s.constant(1), s.square(x));
  return s.pow(x, s.constant(exponent));
}

Value clampTo(ScalarBuilder &s, Value x, Value low, Value high) {
  if (low)
    x = s.max(x, low);
  return high ? s.min(x, high) : x;
}

Value optional(ScalarBuilder &s, std::optional<Attribute> scalar) {
  return scalar && *scalar ? s.constant(*scalar) : Value();
}

Value lerp(ScalarBuilder &s, Value x, Value end, double weight) {
  Value span = s.sub(end, x);
  if (std::abs(weight) < 0.5)
    return s.add(x, s.mul(s.constant(weight), span));
  return s.sub(end, s.mul(span, s.constant(1 - weight)));
}

Value lerp(ScalarBuilder &s, Value x, Value end, Value weight) {
  Value span = s.sub(end, x);
  Value fromStart = s.add(x, s.mul(weight, span));
  Value fromEnd = s.sub(end, s.mul(span, s.sub(s.constant(1), weight)));
  return s.select(s.compare("lt", s.abs(weight), 0.5), fromStart, fromEnd);
}

Value divide(ScalarBuilder &s, Value x, Value y, StringRef mode) {
  if (mode == "floor")
    return s.floorDiv(x, y);
  return mode == "trunc" ? s.trunc(s.div(x, y)) : s.div(x, y);
}

Value sign(ScalarBuilder &s, Value x) {
  if (s.type.isInteger(1))
    return x;
  Value positive = s.cast(s.compare("gt", x, 0)), negative = s.cast(s.compare("lt", x, 0));
  return s.sub(positive, negative);
}

Value sinc(ScalarBuilder &s, Value x) {
  Value product = s.mul(s.constant(M_PI), x);
  return s.select(s.compare("eq", x, 0), s.constant(1), s.div(s.sin(product), product));
}

Value angle(ScalarBuilder &s, Value x) {
  Value angle = s.select(s.compare("lt", x, 0), s.constant(M_PI), s.constant(0));
  return s.select(s.isNan(x), x, angle);
}

Value entropy(ScalarBuilder &s, Value x) {
  Value inside = s.mul(s.neg(x), s.log(x));
  Value edge = s.select(s.compare("eq", x, 0), s.constant(0), s.constant(-INFINITY));
  return s.select(s.isNan(x), x, s.select(s.compare("gt", x, 0), inside, edge));
}

Value roundTo(ScalarBuilder &s, Value x, int64_t decimals) {
  Value ten = s.constant(std::pow(10.0, std::abs(decimals)));
  if (decimals == 0)
    return s.round(x);
  return decimals < 0 ? s.mul(s.round(s.div(x, ten)), ten) : s.div(s.round(s.mul(x, ten)), ten);
}

Value fmax(ScalarBuilder &s, Value x, Value y) {
  return s.select(s.isNan(x), y, s.select(s.isNan(y), x, s.max(x, y)));
}
Value fmin(ScalarBuilder &s, Value x, Value y) {
  return s.select(s.isNan(x), y, s.select(s.isNan(y), x, s.min(x, y)));
}

/// Scaled by the larger one, so that no square overflows.
Value hypot(ScalarBuilder &s, Value x, Value y) {
  Value a = s.abs(x), b = s.abs(y), large = s.max(a, b), small = s.min(a, b);
  Value ratio = s.div(small, large);
  Value length = s.mul(large, s.sqrt(s.add(s.constant(1), s.square(ratio))));
  Value plain = s.bitOr(s.compare("eq", large, 0), s.compare("eq", large, INFINITY));
  return s.select(plain, large, length);
}

Value logAddExp(ScalarBuilder &s, Value x, Value y, bool isBase2) {
  Value gap = s.neg(s.abs(s.sub(x, y)));
  Value rest = isBase2 ? s.mul(s.log1p(s.exp2(gap)), s.constant(M_LOG2E)) : s.log1p(s.exp(gap));
  Value sum = s.add(s.max(x, y), rest);
  Value same = s.bitAnd(s.compare("eq", x, y), s.compare("eq", s.abs(x), INFINITY));
  return s.select(same, x, sum);
}

Value xlogy(ScalarBuilder &s, Value x, Value y, Value log) {
  Value product = s.select(s.compare("eq", x, 0), s.constant(0), s.mul(x, log));
  return s.select(s.isNan(y), s.constant(std::numeric_limits<double>::quiet_NaN()), product);
}

/// Of Euclid's algorithm with the remainder nearest to zero, which is at most half of the divisor: for k steps the
/// divisor is no smaller than the k-th of 1, 2, 5, 12, 29, ... (each twice the one before plus the one before that).
static int countEuclidSteps(unsigned bits) {
  double last = 0, number = 1;
  int steps = 0;
  for (; number < std::ldexp(1.0, static_cast<int>(bits)); ++steps)
    last = std::exchange(number, 2 * number + last);
  return steps;
}

Value gcd(ScalarBuilder &s, Value x, Value y) {
  Value zero = s.constant(0);
  auto isZero = [&](Value v) { return s.compare("eq", v, zero); };
  // The magnitude of the smallest integer is itself, negative; a remainder of it is not. Nor is a divisor -1, by which
  // the smallest integer cannot be divided.
  auto reduced = [&](Value v, Value by) { return s.select(isZero(by), s.abs(v), s.abs(s.fmod(v, s.abs(by)))); };
  Value large = reduced(x, y), small = reduced(y, large);
  for (int step = countEuclidSteps(s.type.getIntOrFloatBitWidth() - 1); step > 0; --step) {
    Value rest = s.fmod(large, small);
    rest = s.min(rest, s.sub(small, rest));
    Value isDone = isZero(small);
    large = s.select(isDone, large, small);
    small = s.select(isDone, zero, rest);
  }
  return large;
}

/// The product is C++'s, of 32 bits at least, and is cut to the type after its sign.
Value lcm(ScalarBuilder &s, Value x, Value y) {
  bool isNarrow = s.type.getIntOrFloatBitWidth() < 32;
  ScalarBuilder wide(s.b, isNarrow ? Type(s.b.getI32Type()) : s.type);
  return s.cast(wide.abs(wide.mul(wide.cast(s.div(x, gcd(s, x, y))), wide.cast(y))));
}

Value nextAfter(ScalarBuilder &s, Value x, Value y) {
  // As integers, floats of one sign follow each other away from zero.
  Type word = s.b.getIntegerType(s.type.getIntOrFloatBitWidth());
  ScalarBuilder bits(s.b, word);
  int64_t negativeZero = APInt::getSignedMinValue(word.getIntOrFloatBitWidth()).getSExtValue();
  Value one = bits.constant(1), least = bits.constant(Attribute(s.b.getI64IntegerAttr(negativeZero + 1)));
  Value isAway = s.logicalNot(bits.bitXor(s.compare("lt", x, y), s.compare("gt", x, 0)));
  Value number = arith::BitcastOp::create(s.b, word, x);
  Value next = bits.add(number, bits.select(isAway, one, bits.constant(-1)));
  next = bits.select(s.compare("eq", x, 0), bits.select(s.compare("lt", y, 0), least, one), next);
  Value result = s.select(s.compare("eq", x, y), y, arith::BitcastOp::create(s.b, s.type, next));
  return s.select(bits.bitOr(s.isNan(x), s.isNan(y)), s.add(x, y), result);
}

Value nanToNum(ScalarBuilder &s, Value x, std::optional<double> nan, std::optional<double> positive,
               std::optional<double> negative) {
  auto type = dyn_cast<FloatType>(s.type);
  if (!type)
    return x;
  double largest = llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  Value result = s.select(s.isNan(x), s.constant(nan.value_or(0)), x);
  result = s.select(s.compare("eq", x, INFINITY), s.constant(positive.value_or(largest)), result);
  return s.select(s.compare("eq", x, -INFINITY), s.constant(negative.value_or(-largest)), result);
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

Value smoothL1(ScalarBuilder &s, Value x, Value target, double beta) {
  Value z = s.abs(s.sub(x, target)), b = s.constant(beta);
  Value square = s.div(s.mul(s.mul(s.constant(0.5), z), z), b);
  return s.select(s.compare("lt", z, b), square, s.sub(z, s.mul(s.constant(0.5), b)));
}

Value smoothL1Slope(ScalarBuilder &s, Value x, Value target, double beta) {
  Value z = s.sub(x, target), b = s.constant(beta);
  Value inside = s.div(z, b), one = s.constant(1);
  Value upper = s.select(s.compare("ge", z, b), one, inside);
  return s.select(s.compare("le", z, s.neg(b)), s.constant(-1), upper);
}

Value huber(ScalarBuilder &s, Value x, Value target, double delta) {
  Value z = s.abs(s.sub(x, target)), d = s.constant(delta), half = s.constant(0.5);
  Value linear = s.mul(d, s.sub(z, s.mul(half, d)));
  return s.select(s.compare("le", z, d), s.mul(s.mul(half, z), z), linear);
}

Value huberSlope(ScalarBuilder &s, Value x, Value target, double delta) {
  Value z = s.sub(x, target), d = s.constant(delta), negative = s.neg(d);
  Value upper = s.select(s.compare("ge", z, d), d, z);
  return s.select(s.compare("le", z, negative), negative, upper);
}

static Value weighted(ScalarBuilder &s, Value x, Value weight) { return weight ? s.mul(x, weight) : x; }

Value bce(ScalarBuilder &s, Value x, Value target, Value weight) {
  Value one = s.constant(1), low = s.constant(-100);
  // Logarithms are at least -100.
  Value right = s.max(s.log1p(s.neg(x)), low), left = s.max(s.log(x), low);
  Value loss = s.sub(s.mul(s.sub(target, one), right), s.mul(target, left));
  return weighted(s, loss, weight);
}

Value bceSlope(ScalarBuilder &s, Value x, Value target, Value weight) {
  Value one = s.constant(1);
  Value spread = s.max(s.mul(s.sub(one, x), x), s.constant(1e-12));
  return weighted(s, s.div(s.sub(x, target), spread), weight);
}

Value bceWithLogits(ScalarBuilder &s, Value x, Value target, Value weight, Value positiveWeight) {
  Value one = s.constant(1);
  Value logSigmoid = s.sub(s.min(x, s.constant(0)), s.log1p(s.exp(s.neg(s.abs(x)))));
  Value loss;
  if (positiveWeight) {
    Value logWeight = s.add(s.mul(s.sub(positiveWeight, one), target), one);
    loss = s.sub(s.mul(s.sub(one, target), x), s.mul(logWeight, logSigmoid));
  } else {
    loss = s.sub(s.mul(s.sub(one, target), x), logSigmoid);
  }
  return weighted(s, loss, weight);
}

Value softMargin(ScalarBuilder &s, Value x, Value target) {
  return s.log1p(s.exp(s.mul(s.neg(target), x)));
}

Value softMarginSlope(ScalarBuilder &s, Value x, Value target) {
  Value z = s.exp(s.mul(s.neg(target), x));
  return s.div(s.mul(s.neg(target), z), s.add(s.constant(1), z));
}

} // namespace spmd::aten
