//===- ScalarFunctions.h - Longer bodies of pointwise ops -------*- C++ -*-===//
//
// What is too long for a line in a .td file, or serves several ops. All of it is PyTorch's arithmetic in PyTorch's
// order (aten/src/ATen/native/cpu, c10/util), so that float64 agrees to rounding.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_SCALARFUNCTIONS_H
#define SPMD_DIALECTS_ATEN_SCALARFUNCTIONS_H

#include "dialects/Aten/ScalarBuilder.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <optional>

namespace spmd::aten {

// Activations.

/// `approximate` is "none" (erf) or "tanh".
mlir::Value gelu(ScalarBuilder &s, mlir::Value x, llvm::StringRef approximate);
mlir::Value geluBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x, llvm::StringRef approximate);
mlir::Value siluBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x);
mlir::Value mish(ScalarBuilder &s, mlir::Value x);
mlir::Value mishBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x);
mlir::Value softplus(ScalarBuilder &s, mlir::Value x, mlir::Attribute beta, mlir::Attribute threshold);
mlir::Value softplusBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x, mlir::Attribute beta,
                             mlir::Attribute threshold);
mlir::Value elu(ScalarBuilder &s, mlir::Value x, double alpha, double scale, double inputScale);
/// `x` is the operand of elu, or its result.
mlir::Value eluBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x, double alpha, double scale,
                        double inputScale, bool isResult);
mlir::Value logSigmoidBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x);
/// min(max(x, 0), 6)
mlir::Value relu6(ScalarBuilder &s, mlir::Value x);
mlir::Value hardtanhBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x, mlir::Attribute low,
                             mlir::Attribute high);
mlir::Value hardswishBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x);
mlir::Value hardsigmoidBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x);
mlir::Value softshrink(ScalarBuilder &s, mlir::Value x, mlir::Attribute lambda);
/// `value` where |x| > lambda, or x is not a number; else 0.
mlir::Value outside(ScalarBuilder &s, mlir::Value x, mlir::Attribute lambda, mlir::Value value);
/// log(x / (1 - x)) of x, clamped to [eps, 1 - eps] if eps is not negative.
mlir::Value logit(ScalarBuilder &s, mlir::Value x, double eps);
mlir::Value logitBackward(ScalarBuilder &s, mlir::Value grad, mlir::Value x, double eps);

// Arithmetic.

/// x to a power that is known: squares, roots and reciprocals are what they are.
mlir::Value power(ScalarBuilder &s, mlir::Value x, mlir::Attribute exponent);
/// min(max(x, low), high); a bound that is null is none.
mlir::Value clampTo(ScalarBuilder &s, mlir::Value x, mlir::Value low, mlir::Value high);
/// An absent attribute is a null value.
mlir::Value optional(ScalarBuilder &s, std::optional<mlir::Attribute> scalar);
inline std::optional<double> number(std::optional<llvm::APFloat> value) {
  return value ? std::optional(value->convertToDouble()) : std::nullopt;
}
/// x + weight * (end - x), in the form that is exact at the nearer end.
mlir::Value lerp(ScalarBuilder &s, mlir::Value x, mlir::Value end, double weight);
mlir::Value lerp(ScalarBuilder &s, mlir::Value x, mlir::Value end, mlir::Value weight);
/// x / y; `mode` is "", "trunc" or "floor".
mlir::Value divide(ScalarBuilder &s, mlir::Value x, mlir::Value y, llvm::StringRef mode);
/// -1, 0 or 1.
mlir::Value sign(ScalarBuilder &s, mlir::Value x);
/// sin(pi x) / (pi x)
mlir::Value sinc(ScalarBuilder &s, mlir::Value x);
/// Of the real number x in the complex plane.
mlir::Value angle(ScalarBuilder &s, mlir::Value x);
/// -x log x
mlir::Value entropy(ScalarBuilder &s, mlir::Value x);
/// x rounded to a decimal digit.
mlir::Value roundTo(ScalarBuilder &s, mlir::Value x, int64_t decimals);
/// The larger, or smaller, of two; a number wins over not-a-number.
mlir::Value fmax(ScalarBuilder &s, mlir::Value x, mlir::Value y);
mlir::Value fmin(ScalarBuilder &s, mlir::Value x, mlir::Value y);
mlir::Value hypot(ScalarBuilder &s, mlir::Value x, mlir::Value y);
/// log(base^x + base^y), base e or 2.
mlir::Value logAddExp(ScalarBuilder &s, mlir::Value x, mlir::Value y, bool isBase2);
/// x * log, but 0 where x is 0 and y is a number.
mlir::Value xlogy(ScalarBuilder &s, mlir::Value x, mlir::Value y, mlir::Value log);
/// Of integers, by Euclid; that of 0 and x is |x|.
mlir::Value gcd(ScalarBuilder &s, mlir::Value x, mlir::Value y);
/// |x / gcd * y|; 0 if one of them is.
mlir::Value lcm(ScalarBuilder &s, mlir::Value x, mlir::Value y);
/// The float of the builder's type that is next to x in the direction of y; y if they are equal.
mlir::Value nextAfter(ScalarBuilder &s, mlir::Value x, mlir::Value y);
mlir::Value nanToNum(ScalarBuilder &s, mlir::Value x, std::optional<double> nan, std::optional<double> positive,
                     std::optional<double> negative);

// Gamma functions, inverse erf (ScalarSpecialFunctions.cpp): relative error below 1e-13 in f64, of the larger of the
// result and 1.

mlir::Value erfinv(ScalarBuilder &s, mlir::Value x);
/// log |gamma(x)|
mlir::Value lgamma(ScalarBuilder &s, mlir::Value x);
/// The derivative of log gamma; its n-th derivative (n >= 1: of positive numbers, n = 1 of all).
mlir::Value digamma(ScalarBuilder &s, mlir::Value x);
mlir::Value polygamma(ScalarBuilder &s, int64_t n, mlir::Value x);

/// The part of the integral of t^(a - 1) exp(-t) over t >= 0 that lies below x (`isUpper`: above), for a, x >= 0
/// (ScalarIncompleteGamma.cpp).
mlir::Value incompleteGamma(ScalarBuilder &s, mlir::Value a, mlir::Value x, bool isUpper);

/// `function` of an f32 as an f64: reflections and series cancel more digits than f32 has to spare.
mlir::Value inDouble(ScalarBuilder &s, mlir::Value x,
                     llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value)> function);

// Special functions by Chebyshev polynomials (ScalarChebyshevFunctions.cpp): relative error below 1e-14 in f64, but for
// the rounding of the arguments of exp, and ndtri: that of the larger of the result and 1.

/// exp(x^2) erfc(x)
mlir::Value erfcx(ScalarBuilder &s, mlir::Value x);
/// The normal distribution function: its logarithm, and its inverse.
mlir::Value logNdtr(ScalarBuilder &s, mlir::Value x);
mlir::Value ndtri(ScalarBuilder &s, mlir::Value p);
/// The modified Bessel function of the first kind of order 0 or 1; `isScaled`: times exp(-|x|).
mlir::Value besselI(ScalarBuilder &s, int order, mlir::Value x, bool isScaled);

// Losses, per element.

mlir::Value smoothL1(ScalarBuilder &s, mlir::Value x, mlir::Value target, double beta);
mlir::Value smoothL1Slope(ScalarBuilder &s, mlir::Value x, mlir::Value target, double beta);
mlir::Value huber(ScalarBuilder &s, mlir::Value x, mlir::Value target, double delta);
mlir::Value huberSlope(ScalarBuilder &s, mlir::Value x, mlir::Value target, double delta);
/// `weight` may be null; so may `positiveWeight`.
mlir::Value bce(ScalarBuilder &s, mlir::Value x, mlir::Value target, mlir::Value weight);
mlir::Value bceSlope(ScalarBuilder &s, mlir::Value x, mlir::Value target, mlir::Value weight);
mlir::Value bceWithLogits(ScalarBuilder &s, mlir::Value x, mlir::Value target, mlir::Value weight,
                          mlir::Value positiveWeight);
mlir::Value softMargin(ScalarBuilder &s, mlir::Value x, mlir::Value target);
mlir::Value softMarginSlope(ScalarBuilder &s, mlir::Value x, mlir::Value target);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_SCALARFUNCTIONS_H
