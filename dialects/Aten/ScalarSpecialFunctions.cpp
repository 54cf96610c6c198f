//===- ScalarSpecialFunctions.cpp - gamma functions, inverse erf ----------===//
//
// Straight-line code for skeletons that have no library: an argument below 8 is
// moved up by the recurrence, where the asymptotic series ends below 1e-15.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/ScalarFunctions.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::aten {

constexpr int kShift = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Coefficients from the highest power down.
static Value polynomial(ScalarBuilder &s, Value x, ArrayRef<double> coefficients) {
  Value sum = s.constant(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = s.add(s.mul(sum, x), s.constant(coefficient));
  return sum;
}

Value inDouble(ScalarBuilder &s, Value x, function_ref<Value(ScalarBuilder &, Value)> function) {
  ScalarBuilder wide(s.b, s.b.getF64Type());
  return s.cast(function(wide, wide.cast(x)));
}

/// As PyTorch's calc_erfinv: a rational function, then two Newton steps.
Value erfinv(ScalarBuilder &s, Value x) {
  if (s.type.isF32())
    return inDouble(s, x, erfinv);
  Value one = s.constant(1), magnitude = s.abs(x);
  Value z = s.square(x);
  Value near = s.div(s.mul(x, polynomial(s, z, {-0.140543331, 0.914624893, -1.645349621, 0.886226899})),
                     polynomial(s, z, {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0}));
  Value root = s.sqrt(s.neg(s.log(s.div(s.sub(one, magnitude), s.constant(2)))));
  Value far = s.div(polynomial(s, root, {1.641345311, 3.429567803, -1.624906493, -1.970840454}),
                    polynomial(s, root, {1.637067800, 3.543889200, 1.0}));
  Value y = s.select(s.compare("le", magnitude, 0.7), near, s.copySign(far, x));
  for (int step = 0; step < 2; ++step) {
    Value slope = s.mul(s.constant(M_2_SQRTPI), s.exp(s.neg(s.square(y))));
    y = s.sub(y, s.div(s.sub(s.erf(y), x), slope));
  }
  y = s.select(s.compare("eq", magnitude, 1), s.copySign(s.constant(kInfinity), x), y);
  return s.select(s.compare("gt", magnitude, 1), s.constant(kNaN), y);
}

namespace {
/// A positive argument: itself, or moved up by kShift.
struct Shifted {
  Value isSmall, small, large;

  Shifted(ScalarBuilder &s, Value x)
      : isSmall(s.compare("lt", x, kShift)), small(s.select(isSmall, x, s.constant(1))),
        large(s.select(isSmall, s.add(x, s.constant(kShift)), x)) {}
};
} // namespace

Value lgamma(ScalarBuilder &s, Value x) {
  if (s.type.isF32())
    return inDouble(s, x, lgamma);
  Value one = s.constant(1), isReflected = s.compare("lt", x, 0.5);
  Value positive = s.select(isReflected, s.sub(one, x), x);
  Shifted arg(s, positive);
  Value product = arg.small;
  for (int i = 1; i < kShift; ++i)
    product = s.mul(product, s.add(arg.small, s.constant(i)));
  Value z = arg.large, inverse = s.div(one, z);
  Value tail = s.mul(inverse, polynomial(s, s.square(inverse),
                                         {1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360,
                                          1.0 / 12}));
  Value main = s.sub(s.mul(s.sub(z, s.constant(0.5)), s.log(z)), z);
  Value result = s.add(s.add(main, s.constant(0.91893853320467274178)), tail);
  result = s.sub(result, s.select(arg.isSmall, s.log(product), s.constant(0)));
  result = s.select(s.compare("eq", positive, kInfinity), positive, result);
  // gamma(x) gamma(1 - x) = pi / sin(pi x). The sine of the fraction, where pi x is exact.
  Value fraction = s.sub(x, s.floor(x));
  Value sine = s.abs(s.sin(s.mul(s.constant(M_PI), fraction)));
  Value reflected = s.sub(s.sub(s.constant(std::log(M_PI)), s.log(sine)), result);
  reflected = s.select(s.compare("eq", fraction, 0), s.constant(kInfinity), reflected);
  return s.select(isReflected, reflected, result);
}

Value digamma(ScalarBuilder &s, Value x) {
  if (s.type.isF32())
    return inDouble(s, x, digamma);
  Value one = s.constant(1), zero = s.constant(0), isReflected = s.compare("lt", x, zero);
  Value positive = s.select(isReflected, s.sub(one, x), x);
  Shifted arg(s, positive);
  Value sum = s.div(one, arg.small);
  for (int i = 1; i < kShift; ++i)
    sum = s.add(sum, s.div(one, s.add(arg.small, s.constant(i))));
  Value z = arg.large, inverse = s.div(one, z), square = s.square(inverse);
  Value tail = s.mul(square, polynomial(s, square,
                                        {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120,
                                         1.0 / 12}));
  Value result = s.sub(s.sub(s.log(z), s.mul(s.constant(0.5), inverse)), tail);
  result = s.sub(result, s.select(arg.isSmall, sum, zero));
  // psi(1 - x) - psi(x) = pi / tan(pi x)
  Value fraction = s.sub(x, s.trunc(x));
  Value reflected = s.sub(result, s.div(s.constant(M_PI), s.tan(s.mul(s.constant(M_PI), fraction))));
  reflected = s.select(s.compare("eq", fraction, 0), s.constant(kNaN), reflected);
  result = s.select(isReflected, reflected, result);
  return s.select(s.compare("eq", x, 0), s.copySign(s.constant(kInfinity), s.neg(x)), result);
}

/// The Hurwitz zeta function of integer s at positive q, by Euler and Maclaurin.
static Value zeta(ScalarBuilder &b, int64_t exponent, Value q) {
  auto inversePower = [&](Value x, int64_t n) {
    Value inverse = b.div(b.constant(1), x), product = inverse;
    for (int64_t i = 1; i < n; ++i)
      product = b.mul(product, inverse);
    return product;
  };
  constexpr int kTerms = 12;
  Value sum = inversePower(q, exponent);
  for (int i = 1; i < kTerms; ++i)
    sum = b.add(sum, inversePower(b.add(q, b.constant(i)), exponent));
  Value z = b.add(q, b.constant(kTerms)), power = inversePower(z, exponent), square = b.square(b.div(b.constant(1), z));
  sum = b.add(sum, b.add(b.div(b.mul(power, z), b.constant(exponent - 1)), b.mul(b.constant(0.5), power)));
  // Bernoulli numbers B_2j / (2j)!, times s (s + 1) ... (s + 2j - 2) / z^(s + 2j - 1).
  constexpr double kBernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
                                   -691.0 / 1307674368000, 1.0 / 74724249600};
  double rising = exponent;
  Value term = b.mul(power, b.div(b.constant(1), z));
  for (int j = 0; j < 7; ++j) {
    sum = b.add(sum, b.mul(b.constant(kBernoulli[j] * rising), term));
    rising *= static_cast<double>(exponent + 2 * j + 1) * static_cast<double>(exponent + 2 * j + 2);
    term = b.mul(term, square);
  }
  return sum;
}

/// The n-th derivative of pi cot(pi x). That of a polynomial p in c = cot(pi x) is -pi (1 + c^2) p'(c).
static Value cotangentDerivative(ScalarBuilder &s, int64_t n, Value x) {
  SmallVector<double> p = {0, M_PI}; // coefficients from the constant up
  for (int64_t i = 0; i < n; ++i) {
    SmallVector<double> next(p.size() + 1, 0);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= M_PI * static_cast<double>(k) * p[k];
      next[k + 1] -= M_PI * static_cast<double>(k) * p[k];
    }
    p = next;
  }
  Value fraction = s.sub(x, s.floor(x)), angle = s.mul(s.constant(M_PI), fraction);
  std::reverse(p.begin(), p.end());
  Value value = polynomial(s, s.div(s.cos(angle), s.sin(angle)), p);
  // At poles: of an odd derivative -infinity from both sides, as PyTorch has it for all.
  return s.select(s.compare("eq", fraction, 0), s.constant(n % 2 ? -kInfinity : kInfinity), value);
}

Value polygamma(ScalarBuilder &s, int64_t n, Value x) {
  if (n == 0)
    return digamma(s, x);
  if (s.type.isF32())
    return inDouble(s, x, [&](ScalarBuilder &wide, Value x) { return polygamma(wide, n, x); });
  double factorial = std::tgamma(static_cast<double>(n) + 1);
  Value isReflected = s.compare("lt", x, 0.5);
  Value result = s.mul(s.constant(n % 2 ? factorial : -factorial),
                       zeta(s, n + 1, s.select(isReflected, s.sub(s.constant(1), x), x)));
  // psi_n(1 - x) - (-1)^n psi_n(x) = (-1)^n times the n-th derivative of pi cot(pi x)
  Value reflected = s.sub(n % 2 ? s.neg(result) : result, cotangentDerivative(s, n, x));
  return s.select(isReflected, reflected, result);
}

} // namespace spmd::aten
