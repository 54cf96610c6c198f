//===- ScalarCode.h - the body of a kernel, point by point ------*- C++ -*-===//
//
// The definition of arith and math: every scalar value is a function over an
// iteration space, so it is evaluated as a vector with one number per point (one
// alone when it is the same everywhere), a double or a whole 64-bit integer.
// Nothing is known here of stages, vectors or threads: this judges the code
// generator, and evaluates the scalar bodies of aten ops.
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H
#define SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H

#include "dialects/Kernel/Kernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <functional>

namespace spmd::interp {

using Lanes = std::vector<double>;

/// A value by its type: floats as doubles, integers and truth values (0 and 1) as they are.
struct TypedLanes {
  std::vector<double> reals;
  std::vector<int64_t> integers;
  bool isInteger = false;

  size_t size() const { return isInteger ? integers.size() : reals.size(); }
};

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

/// Runs a block that knows of no kernel and yields one value, arith and math alone, for `size` points: some at a time,
/// so that values in between stay in the cache. `read` gives the arguments at `count` points, `write` gets the value
/// there; one lane is the same at all of them.
mlir::LogicalResult runScalarCode(mlir::Block &block, size_t size,
                                  llvm::function_ref<std::vector<TypedLanes>(size_t begin, size_t count)> read,
                                  llvm::function_ref<void(size_t begin, size_t count, const TypedLanes &value)> write);

/// Combines two values of a reduction.
double combine(kernel::ReduceKind kind, double a, double b);
/// What leaves the other value as it is.
double neutralElement(kernel::ReduceKind kind);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_SCALARCODE_H
