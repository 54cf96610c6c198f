//===- Arithmetic.h - Captured ops written out as arithmetic ----*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_ARITHMETIC_H
#define SPMD_LIB_IMPORT_NORMALIZE_ARITHMETIC_H

#include "../Emitter.h"

namespace spmd {

/// Emits arithmetic in one element type; operands of another are converted. Operands broadcast.
class Arithmetic {
public:
  Arithmetic(Emitter &emitter, mlir::Type type) : emitter(emitter), type(type) {}

  mlir::Type elementType() const { return type; }

  /// f32 for f16 and bf16, else the type.
  static mlir::Type computeType(mlir::Type type);

  mlir::Value add(mlir::Value a, mlir::Value b) { return binary("add.Tensor", a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return binary("sub.Tensor", a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary("mul.Tensor", a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return binary("div.Tensor", a, b); }
  mlir::Value add(mlir::Value a, double b) { return withNumber("add.Scalar", a, b); }
  mlir::Value mul(mlir::Value a, double b) { return withNumber("mul.Scalar", a, b); }
  mlir::Value div(mlir::Value a, double b) { return withNumber("div.Scalar", a, b); }
  mlir::Value unary(llvm::StringRef op, mlir::Value a);
  /// An op of two operands, with a result of this type.
  mlir::Value binary(llvm::StringRef op, mlir::Value a, mlir::Value b);
  /// A 0-dimensional number.
  mlir::Value constant(double value);
  mlir::Value where(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// At least `low` and at most `high`, where given.
  mlir::Value clamp(mlir::Value a, std::optional<double> low, std::optional<double> high);
  mlir::Value sum(mlir::Value a, llvm::ArrayRef<int64_t> dims, bool keepDims = false) {
    return reduce("sum.dim_IntList", a, dims, keepDims);
  }
  /// "amax", "amin", "sum.dim_IntList".
  mlir::Value reduce(llvm::StringRef op, mlir::Value a, llvm::ArrayRef<int64_t> dims, bool keepDims = false);
  /// i1, of values of this type.
  mlir::Value compare(llvm::StringRef op, mlir::Value a, mlir::Value b);
  /// 0, 1, 2, ... along dim `dim` of `rank`, the other dims being 1.
  mlir::Value positions(int64_t count, int64_t dim, int64_t rank);
  /// a b for matrices.
  mlir::Value product(mlir::Value a, mlir::Value b);

private:
  mlir::Value get(mlir::Value value) { return emitter.cast(value, type); }
  mlir::Attribute number(double value);
  mlir::Value withNumber(llvm::StringRef op, mlir::Value a, double b);

  Emitter &emitter;
  mlir::Type type;
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_ARITHMETIC_H
