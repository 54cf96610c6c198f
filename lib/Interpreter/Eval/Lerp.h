//===- Lerp.h - PyTorch's linear interpolation ------------------*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_LERP_H
#define SPMD_LIB_INTERPRETER_EVAL_LERP_H

#include <cmath>

namespace spmd::interp {

/// The form that is exact at both ends.
inline double lerp(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start) : end - (end - start) * (1 - weight);
}

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_LERP_H
