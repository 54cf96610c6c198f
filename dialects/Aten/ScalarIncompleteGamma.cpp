//===- ScalarIncompleteGamma.cpp - igamma, igammac ------------------------===//
//
// [Note: incomplete gamma functions]
// Straight-line code, so a fixed number of terms that is enough everywhere, for an absolute error below 1e-13 (measured
// against 40 digits: 2e-14). For a below 60: below x = a + 1 the power series, above it Legendre's continued fraction,
// 90 terms of each. From a = 60 on the integrand is a bell of width sqrt(a - 1) about a - 1: its part from x to where
// the bell ends, on the side of x, by Gauss and Legendre's rule with 24 points. That part is the smaller one, so that
// tails keep some digits of their own.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/ScalarFunctions.h"

#include <cmath>
#include <limits>
#include <utility>

using namespace mlir;

namespace spmd::aten {

constexpr int kTerms = 90, kPoints = 24, kLarge = 60;

/// x^a exp(-x) / gamma(a + 1), with the logarithms taken together: near x = a they cancel. A small a is moved up.
static Value bell(ScalarBuilder &s, Value a, Value x) {
  constexpr int kShift = 8;
  Value one = s.constant(1), isSmall = s.compare("lt", a, kShift - 1), z = s.add(a, one), product = z;
  for (int i = 1; i < kShift; ++i)
    product = s.mul(product, s.add(z, s.constant(i)));
  product = s.select(isSmall, product, one);
  Value shift = s.select(isSmall, s.constant(kShift), s.constant(0));
  z = s.add(z, shift);
  // Stirling's series.
  Value inverse = s.div(one, z), square = s.square(inverse), tail = s.constant(1.0 / 156);
  for (double coefficient : {-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12})
    tail = s.add(s.mul(tail, square), s.constant(coefficient));
  Value exponent = s.add(s.mul(a, s.log(s.div(x, z))), s.sub(z, x));
  exponent = s.sub(exponent, s.mul(s.add(shift, s.constant(0.5)), s.log(z)));
  exponent = s.sub(exponent, s.add(s.constant(0.91893853320467274178), s.mul(inverse, tail)));
  return s.mul(product, s.exp(exponent));
}

/// The lower function by its series, the upper one by its continued fraction, from the last term on.
static std::pair<Value, Value> expand(ScalarBuilder &s, Value a, Value x) {
  Value series = s.constant(1), fraction = s.sub(s.add(x, s.constant(2 * kTerms + 1)), a);
  for (int k = kTerms; k > 0; --k) {
    series = s.add(s.constant(1), s.mul(series, s.div(x, s.add(a, s.constant(k)))));
    Value numerator = s.mul(s.constant(k), s.sub(s.constant(k), a));
    fraction = s.sub(s.sub(s.add(x, s.constant(2 * k - 1)), a), s.div(numerator, fraction));
  }
  Value factor = bell(s, a, x);
  return {s.mul(factor, series), s.div(s.mul(factor, a), fraction)};
}

/// Point i of the rule on [-1, 1], a zero of Legendre's polynomial, and its weight.
static std::pair<double, double> getPoint(int i) {
  double x = std::cos(M_PI * (i + 0.75) / (kPoints + 0.5)), slope = 0;
  for (int step = 0; step < 8; ++step) {
    double last = 1, value = x;
    for (int n = 2; n <= kPoints; ++n)
      last = std::exchange(value, ((2 * n - 1) * x * value - (n - 1) * last) / n);
    slope = kPoints * (x * value - last) / (x * x - 1);
    x -= value / slope;
  }
  return {x, 2 / ((1 - x * x) * slope * slope)};
}

/// The part of the bell that is beyond x, seen from its middle.
static Value integrate(ScalarBuilder &s, Value a, Value x) {
  Value one = s.constant(1), middle = s.sub(a, one), width = s.sqrt(middle);
  auto away = [&](Value from, double widths) { return s.add(from, s.mul(s.constant(widths), width)); };
  Value high = s.max(away(middle, 11.5), away(x, 6));
  Value low = s.max(s.constant(0), s.min(away(middle, -7.5), away(x, -5)));
  Value isAbove = s.compare("gt", x, middle);
  Value start = s.select(isAbove, x, low), half = s.mul(s.constant(0.5), s.sub(s.select(isAbove, high, x), start));
  Value center = s.sub(s.add(start, half), middle), inverse = s.div(one, middle), sum = s.constant(0);
  for (int i = 0; i < kPoints; ++i) {
    auto [point, weight] = getPoint(i);
    Value distance = s.mul(s.add(center, s.mul(s.constant(point), half)), inverse);
    Value height = s.exp(s.mul(middle, s.sub(s.log1p(distance), distance)));
    sum = s.add(sum, s.mul(s.constant(weight), height));
  }
  // The height in the middle, by Stirling's series.
  Value square = s.square(inverse);
  Value tail = s.add(s.constant(-1.0 / 360), s.mul(square, s.constant(1.0 / 1260)));
  tail = s.mul(inverse, s.add(s.constant(1.0 / 12), s.mul(square, tail)));
  Value height = s.div(s.exp(s.neg(tail)), s.mul(width, s.constant(std::sqrt(2 * M_PI))));
  return s.mul(s.mul(sum, half), height);
}

/// See [Note: incomplete gamma functions].
Value incompleteGamma(ScalarBuilder &s, Value a, Value x, bool isUpper) {
  if (s.type.isF32()) {
    ScalarBuilder wide(s.b, s.b.getF64Type());
    return s.cast(incompleteGamma(wide, wide.cast(a), wide.cast(x), isUpper));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value one = s.constant(1), isLarge = s.compare("ge", a, kLarge);
  // Each way on arguments of its own.
  Value small = s.select(isLarge, one, a), large = s.select(isLarge, a, s.constant(kLarge));
  auto [lower, upper] = expand(s, small, x);
  Value isAbove = s.compare("gt", x, s.select(isLarge, s.sub(a, one), s.add(a, one)));
  Value part = s.select(isLarge, integrate(s, large, x), s.select(isAbove, upper, lower));
  // The part above x where it is above, else that below.
  Value rest = s.sub(one, part), result = isUpper ? s.select(isAbove, part, rest) : s.select(isAbove, rest, part);
  Value below = s.constant(isUpper ? 0 : 1), above = s.constant(isUpper ? 1 : 0);
  Value isFar = s.compare("eq", x, kInfinity), isEndless = s.compare("eq", a, kInfinity);
  result = s.select(isFar, below, s.select(isEndless, above, result));
  Value isWrong = s.bitOr(s.compare("lt", a, 0), s.compare("lt", x, 0));
  isWrong = s.bitOr(isWrong, s.bitOr(s.bitAnd(isFar, isEndless), s.bitOr(s.isNan(a), s.isNan(x))));
  isWrong = s.bitOr(isWrong, s.bitAnd(s.compare("eq", a, 0), s.compare("eq", x, 0)));
  return s.select(isWrong, s.constant(std::numeric_limits<double>::quiet_NaN()), result);
}

} // namespace spmd::aten
