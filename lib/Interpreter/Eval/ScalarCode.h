//===- ScalarCode.h - the body of a kernel, point by point ------*- C++ -*-===//
//
// The definition of a kernel's body: every scalar value is a function over the
// iteration space, so it is evaluated as a vector with one double per point (one
// alone when it is the same everywhere). Nothing is known here of stages, vectors
// or threads: this judges the code generator. Integers of kernels are positions,
// which doubles hold exactly.
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H
#define SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H

#include "dialects/Kernel/Kernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <functional>

namespace spmd::interp {

using Lanes = std::vector<double>;

/// What a body needs to know of the kernel around it.
struct ScalarContext {
  /// Lanes of kernel.index along a dim.
  std::function<Lanes(int64_t dim)> index;
  /// Coordinate of the rank along a mesh axis.
  std::function<double(int64_t axis)> coordinate;
  std::function<Lanes(kernel::ReduceOp reduce, const Lanes &value)> reduce;
  /// Lanes of a constant per segment.
  std::function<Lanes(const Tensor &table)> segmentConstant;
};

/// Runs the block and returns what it yields; an error on an op that has no
/// meaning here.
mlir::FailureOr<std::vector<Lanes>> runScalarCode(mlir::Block &block, std::vector<Lanes> arguments,
                                                  const ScalarContext &context);

/// Combines two values of a reduction.
double combine(kernel::ReduceKind kind, double a, double b);
/// What leaves the other value as it is.
double neutralElement(kernel::ReduceKind kind);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H
