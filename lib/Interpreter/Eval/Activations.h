//===- Activations.h - scalar activation functions --------------*- C++ -*-===//
//
// Shared by the forward and backward evaluators.
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_ACTIVATIONS_H
#define SPMD_LIB_INTERPRETER_EVAL_ACTIVATIONS_H

#include <cmath>

namespace spmd::interp {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }

inline double geluErf(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }
inline double geluErfDerivative(double x) {
  double cdf = 0.5 * (1 + std::erf(x * M_SQRT1_2));
  double pdf = std::exp(-0.5 * x * x) * M_2_SQRTPI * M_SQRT1_2 * 0.5;
  return cdf + x * pdf;
}

constexpr double kGeluCubic = 0.044715;
inline double geluTanhArgument(double x) { return M_SQRT2 * M_2_SQRTPI * 0.5 * (x + kGeluCubic * x * x * x); }
inline double geluTanh(double x) { return 0.5 * x * (1 + std::tanh(geluTanhArgument(x))); }
inline double geluTanhDerivative(double x) {
  double t = std::tanh(geluTanhArgument(x));
  double inner = M_SQRT2 * M_2_SQRTPI * 0.5 * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

/// PyTorch's lerp: the form that is exact at both ends.
inline double lerp(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start) : end - (end - start) * (1 - weight);
}

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_ACTIVATIONS_H
