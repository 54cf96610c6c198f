//===- ScalarDefinitions.cpp - pointwise ops in C++ -----------------------===//

#include "ScalarDefinitions.h"

#include <cmath>

namespace {

/// Integers wrap; C++ defines that of unsigned ones only.
int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }

/// Not-a-number comes out, and -0 is less than 0.
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a >= b ? a : b; // of two zeros the first
}
double smaller(double a, double b) { return -larger(-a, -b); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

constexpr long double kPi = 3.14159265358979323846264338327950288L;

/// An exponent of some hundreds, rounded, is an exponential that is as many units off.
constexpr uint64_t kTanhUlps = 128;

/// (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, of which the tail is not lost to the sum.
long double tanhGate(long double x) {
  return 1 / (1 + std::exp(-2 * std::sqrt(2 / kPi) * (x + 0.044715L * x * x * x)));
}
long double tanhGateSlope(long double x) {
  long double gate = tanhGate(x);
  return 2 * gate * (1 - gate) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715L * x * x);
}

double geluErfGradient(double grad, double x) {
  double cdf = 0.5 * (1 + std::erf(x * M_SQRT1_2));
  double pdf = std::exp(-0.5 * (x * x)) * (M_2_SQRTPI * M_SQRT1_2 * 0.5);
  return grad * (cdf + x * pdf);
}

/// PyTorch takes these exponents apart.
double power(double x, double exponent) {
  if (exponent == 2)
    return x * x;
  if (exponent == 3)
    return x * x * x;
  if (exponent == 0.5)
    return std::sqrt(x);
  if (exponent == -0.5)
    return 1 / std::sqrt(x);
  if (exponent == -1)
    return 1 / x;
  if (exponent == -2)
    return 1 / (x * x);
  return std::pow(x, exponent);
}
/// Of a negative exponent, what is left of a fraction.
int64_t power(int64_t x, int64_t exponent) {
  if (exponent < 0)
    return x == 1 ? 1 : x == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i)
    result *= u(x);
  return wrap(result);
}

double lerp(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start) : end - (end - start) * (1 - weight);
}

#define REALS(expression) [](const double *v) -> double { return expression; }
#define INTEGERS(expression) [](const int64_t *v) -> int64_t { return expression; }
#define BOTH(expression) REALS(expression), INTEGERS(expression)

std::vector<ScalarDefinition> makeDefinitions() {
  const std::vector<const char *> alphas = {"{alpha = 1 : i64}", "{alpha = 3 : i64}", "{alpha = 5.000000e-01 : f64}",
                                            "{alpha = -9223372036854775807 : i64}"};
  const std::vector<const char *> numbers = {"{other = 0 : i64}",
                                             "{other = 7 : i64}",
                                             "{other = -1 : i64}",
                                             "{other = 2.500000e-01 : f64}",
                                             "{other = 0x7FF0000000000000 : f64}",
                                             "{other = 0x7FF8000000000000 : f64}"};
  const std::vector<const char *> scaledNumbers = {
      "{other = 7 : i64, alpha = 1 : i64}", "{other = 4611686018427387905 : i64, alpha = 5 : i64}",
      "{other = 2.500000e-01 : f64, alpha = 3 : i64}", "{other = 1.000000e-01 : f64, alpha = 7.000000e-01 : f64}"};
  const std::vector<const char *> values = {"{value = 1 : i64}", "{value = -3 : i64}", "{value = 1.000000e-01 : f64}"};
  std::vector<ScalarDefinition> d = {
      // Sums, products and their relatives.
      {"add.Tensor",
       "tt",
       "fi",
       REALS(v[0] + v[2] * v[1]),
       INTEGERS(wrap(u(v[0]) + u(v[2]) * u(v[1]))),
       {"alpha"},
       alphas},
      {"add.Tensor", "tt", "b", REALS(v[0] + v[1]), INTEGERS(v[0] | v[1]), {}, {"{alpha = 1 : i64}"}},
      {"add.Scalar",
       "t",
       "fi",
       REALS(v[0] + v[1] * v[2]),
       INTEGERS(wrap(u(v[0]) + u(v[1]) * u(v[2]))),
       {"other", "alpha"},
       scaledNumbers},
      {"sub.Tensor",
       "tt",
       "fi",
       REALS(v[0] - v[2] * v[1]),
       INTEGERS(wrap(u(v[0]) - u(v[2]) * u(v[1]))),
       {"alpha"},
       alphas},
      {"sub.Scalar",
       "t",
       "fi",
       REALS(v[0] - v[1] * v[2]),
       INTEGERS(wrap(u(v[0]) - u(v[1]) * u(v[2]))),
       {"other", "alpha"},
       scaledNumbers},
      {"rsub.Scalar",
       "t",
       "fi",
       REALS(v[1] - v[2] * v[0]),
       INTEGERS(wrap(u(v[1]) - u(v[2]) * u(v[0]))),
       {"other", "alpha"},
       scaledNumbers},
      {"mul.Tensor", "tt", "fib", REALS(v[0] * v[1]), INTEGERS(wrap(u(v[0]) * u(v[1])))},
      {"mul.Scalar", "t", "fi", REALS(v[0] * v[1]), INTEGERS(wrap(u(v[0]) * u(v[1]))), {"other"}, numbers},
      {"div.Tensor", "tt", "fib", REALS(v[0] / v[1]), nullptr},
      {"div.Scalar", "t", "fib", REALS(v[0] / v[1]), nullptr, {"other"}, numbers},
      {"maximum", "tt", "fib", REALS(larger(v[0], v[1])), INTEGERS(v[0] < v[1] ? v[1] : v[0])},
      {"minimum", "tt", "fib", REALS(smaller(v[0], v[1])), INTEGERS(v[0] < v[1] ? v[0] : v[1])},
      {"pow.Tensor_Scalar",
       "t",
       "f",
       REALS(power(v[0], v[1])),
       nullptr,
       {"exponent"},
       {"{exponent = 0 : i64}", "{exponent = 1 : i64}", "{exponent = 2 : i64}", "{exponent = 3 : i64}",
        "{exponent = 5.000000e-01 : f64}", "{exponent = -5.000000e-01 : f64}", "{exponent = -1 : i64}",
        "{exponent = -2 : i64}", "{exponent = 2.500000e+00 : f64}", "{exponent = -3 : i64}"}},
      {"pow.Tensor_Scalar",
       "t",
       "i",
       nullptr,
       INTEGERS(power(v[0], v[1])),
       {"exponent"},
       {"{exponent = 0 : i64}", "{exponent = 1 : i64}", "{exponent = 2 : i64}", "{exponent = 3 : i64}",
        "{exponent = 7 : i64}", "{exponent = 63 : i64}", "{exponent = 64 : i64}", "{exponent = 101 : i64}"}},
      {"pow.Scalar",
       "t",
       "f",
       REALS(std::pow(v[1], v[0])),
       nullptr,
       {"self"},
       {"{self = 0 : i64}", "{self = 1 : i64}", "{self = 9.000000e-01 : f64}", "{self = -2 : i64}"}},
      {"pow.Scalar",
       "e",
       "i",
       nullptr,
       INTEGERS(power(v[1], v[0])),
       {"self"},
       {"{self = 0 : i64}", "{self = 3 : i64}", "{self = -2 : i64}", "{self = -1 : i64}"}},
      {"pow.Tensor_Tensor", "tt", "f", REALS(std::pow(v[0], v[1])), nullptr},
      {"pow.Tensor_Tensor", "te", "i", nullptr, INTEGERS(power(v[0], v[1]))},
      {"addcmul", "ttt", "f", REALS(v[0] + v[3] * v[1] * v[2]), nullptr, {"value"}, values},
      {"addcdiv", "ttt", "f", REALS(v[0] + v[3] * v[1] / v[2]), nullptr, {"value"}, values},
      {"lerp.Scalar",
       "tt",
       "f",
       REALS(lerp(v[0], v[1], v[2])),
       nullptr,
       {"weight"},
       {"{weight = 1.000000e-01 : f64}", "{weight = 5.000000e-01 : f64}", "{weight = 9.000000e-01 : f64}",
        "{weight = -1 : i64}", "{weight = 1 : i64}"}},

      // Functions of one argument.
      {"neg", "t", "fi", REALS(-v[0]), INTEGERS(wrap(-u(v[0])))},
      {"abs", "t", "fi", REALS(std::fabs(v[0])), INTEGERS(v[0] < 0 ? wrap(-u(v[0])) : v[0])},
      {"exp", "t", "fib", REALS(std::exp(v[0])), nullptr},
      {"log", "t", "fib", REALS(std::log(v[0])), nullptr},
      {"sqrt", "t", "fib", REALS(std::sqrt(v[0])), nullptr},
      {"rsqrt", "t", "fib", REALS(1 / std::sqrt(v[0])), nullptr},
      {"reciprocal", "t", "fib", REALS(1 / v[0]), nullptr},
      {"sin", "t", "fib", REALS(std::sin(v[0])), nullptr},
      {"cos", "t", "fib", REALS(std::cos(v[0])), nullptr},
      {"tanh", "t", "fib", REALS(std::tanh(v[0])), nullptr},
      {"erf", "t", "fib", REALS(std::erf(v[0])), nullptr},
      {"sigmoid", "t", "fib", REALS(sigmoid(v[0])), nullptr},
      {"silu", "t", "f", REALS(v[0] / (1 + std::exp(-v[0]))), nullptr},
      {"relu", "t", "fi", REALS(larger(v[0], 0)), INTEGERS(v[0] < 0 ? 0 : v[0])},
      {"gelu",
       "t",
       "f",
       REALS(v[0] * (0.5 * (1 + std::erf(v[0] * M_SQRT1_2)))),
       nullptr,
       {},
       {"{approximate = \"none\"}"}},
      {"gelu",
       "t",
       "f",
       REALS(static_cast<double>(v[0] * tanhGate(v[0]))),
       nullptr,
       {},
       {"{approximate = \"tanh\"}"},
       kTanhUlps},

      // Gradients of activations.
      {"gelu_backward", "tt", "f", REALS(geluErfGradient(v[0], v[1])), nullptr, {}, {"{approximate = \"none\"}"}},
      {"gelu_backward",
       "tt",
       "f",
       REALS(static_cast<double>(v[0] * (tanhGate(v[1]) + v[1] * tanhGateSlope(v[1])))),
       nullptr,
       {},
       {"{approximate = \"tanh\"}"},
       kTanhUlps},
      {"silu_backward", "tt", "f", REALS(v[0] * sigmoid(v[1]) * (1 + v[1] * (1 - sigmoid(v[1])))), nullptr},
      {"tanh_backward", "tt", "f", REALS(v[0] * (1 - v[1] * v[1])), nullptr},
      {"sigmoid_backward", "tt", "f", REALS(v[0] * (1 - v[1]) * v[1]), nullptr},
      // It selects: a gradient that is not a number does not pass a closed gate.
      {"threshold_backward",
       "tt",
       "fi",
       BOTH(v[1] <= v[2] ? 0 : v[0]),
       {"threshold"},
       {"{threshold = 0 : i64}", "{threshold = 1 : i64}"}},

      // Comparison, logic, selection.
      {"eq.Tensor", "tt", "fib", BOTH(v[0] == v[1])},
      {"ne.Tensor", "tt", "fib", BOTH(v[0] != v[1])},
      {"lt.Tensor", "tt", "fib", BOTH(v[0] < v[1])},
      {"le.Tensor", "tt", "fib", BOTH(v[0] <= v[1])},
      {"gt.Tensor", "tt", "fib", BOTH(v[0] > v[1])},
      {"ge.Tensor", "tt", "fib", BOTH(v[0] >= v[1])},
      {"eq.Scalar", "t", "fib", BOTH(v[0] == v[1]), {"other"}, numbers},
      {"ne.Scalar", "t", "fib", BOTH(v[0] != v[1]), {"other"}, numbers},
      {"lt.Scalar", "t", "fib", BOTH(v[0] < v[1]), {"other"}, numbers},
      {"le.Scalar", "t", "fib", BOTH(v[0] <= v[1]), {"other"}, numbers},
      {"gt.Scalar", "t", "fib", BOTH(v[0] > v[1]), {"other"}, numbers},
      {"ge.Scalar", "t", "fib", BOTH(v[0] >= v[1]), {"other"}, numbers},
      {"logical_not", "t", "fib", BOTH(v[0] == 0)},
      {"logical_and", "tt", "fib", BOTH(v[0] != 0 && v[1] != 0)},
      {"bitwise_not", "t", "i", nullptr, INTEGERS(~v[0])},
      {"bitwise_not", "t", "b", nullptr, INTEGERS(!v[0])},
      {"bitwise_and.Tensor", "tt", "ib", nullptr, INTEGERS(v[0] & v[1])},
      {"where.self", "mtt", "fib", BOTH(v[0] != 0 ? v[1] : v[2])},
      {"masked_fill.Scalar",
       "tm",
       "f",
       REALS(v[1] != 0 ? v[2] : v[0]),
       nullptr,
       {"value"},
       {"{value = 0 : i64}", "{value = 0xFFF0000000000000 : f64}", "{value = 1.000000e-01 : f64}"}},
      {"masked_fill.Scalar",
       "tm",
       "i",
       nullptr,
       INTEGERS(v[1] != 0 ? v[2] : v[0]),
       {"value"},
       {"{value = 0 : i64}", "{value = -5 : i64}"}},
      {"clamp",
       "t",
       "f",
       REALS(smaller(larger(v[0], v[1]), v[2])),
       nullptr,
       {"min", "max"},
       {"{min = -1 : i64, max = 3 : i64}", "{min = -5.000000e-01 : f64, max = 5.000000e-01 : f64}",
        "{min = 2 : i64, max = 1 : i64}"}},
      {"clamp", "t", "f", REALS(larger(v[0], v[1])), nullptr, {"min"}, {"{min = 0 : i64}"}},
      {"clamp",
       "t",
       "i",
       nullptr,
       INTEGERS(v[0] < v[1] ? (v[1] < v[2] ? v[1] : v[2]) : (v[0] < v[2] ? v[0] : v[2])),
       {"min", "max"},
       {"{min = -1 : i64, max = 3 : i64}", "{min = 2 : i64, max = 1 : i64}"}},
      {"clamp", "t", "i", nullptr, INTEGERS(v[0] < v[1] ? v[0] : v[1]), {"max"}, {"{max = 3 : i64}"}},
      {"clamp.Tensor",
       "ttt",
       "f",
       REALS(smaller(larger(v[0], v[1]), v[2])),
       nullptr,
       {},
       {"{operandSegmentSizes = array<i32: 1, 1, 1>}"}},
      {"clamp.Tensor",
       "tt",
       "f",
       REALS(smaller(v[0], v[1])),
       nullptr,
       {},
       {"{operandSegmentSizes = array<i32: 1, 0, 1>}"}},
      {"clamp.Tensor",
       "tt",
       "i",
       nullptr,
       INTEGERS(v[0] < v[1] ? v[1] : v[0]),
       {},
       {"{operandSegmentSizes = array<i32: 1, 1, 0>}"}},
  };
  return d;
}

} // namespace

const std::vector<ScalarDefinition> &getScalarDefinitions() {
  static const std::vector<ScalarDefinition> definitions = makeDefinitions();
  return definitions;
}
