//===- ScalarBodies.h - what one element of a pointwise op is ---*- C++ -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_SCALARBODIES_H
#define SPMD_CONVERSION_ATENTOKERNEL_SCALARBODIES_H

#include "spmd/Conversion/AtenToKernel/Graph.h"

namespace spmd::fusion {

/// Converts a scalar as PyTorch does: to i1 by comparing with zero, floats to integers by truncation.
mlir::Value castScalar(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type type);

/// The type an op computes in when its result is `type`: f32 for f16 and bf16, else the type.
mlir::Type getComputeType(mlir::Type type);

/// The scalar body of a pointwise aten op: one argument per tensor operand, of the operand's element type, one result
/// of the result's. Written once per op, with PyTorch's arithmetic in PyTorch's order; targets only choose the width.
/// Null when the op is not a pointwise op known here.
ScalarBody getScalarBody(mlir::Operation *op);

/// A PyTorch Scalar attribute (integer, float or bool) as a number.
double getScalarValue(mlir::Attribute attr);

/// Arithmetic on values of one float or integer type, by name.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::ImplicitLocOpBuilder &b, mlir::Type type) : b(b), type(type) {}

  mlir::Value constant(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  /// Not-a-number wins.
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  mlir::Value sin(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);
  mlir::Value square(mlir::Value x) { return mul(x, x); }
  mlir::Value sigmoid(mlir::Value x);
  /// i1; `predicate` is one of "eq", "ne", "lt", "le", "gt", "ge". Not-a-number is only `ne`.
  mlir::Value compare(llvm::StringRef predicate, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type;

private:
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type); }
};

} // namespace spmd::fusion

#endif // SPMD_CONVERSION_ATENTOKERNEL_SCALARBODIES_H
