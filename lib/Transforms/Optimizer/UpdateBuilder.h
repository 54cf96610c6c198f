//===- UpdateBuilder.h - Arithmetic of one list position or chunk -*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_OPTIMIZER_UPDATEBUILDER_H
#define SPMD_LIB_TRANSFORMS_OPTIMIZER_UPDATEBUILDER_H

#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace spmd {

/// A hyper-parameter: known now, or a tensor.
struct Number {
  Number(double constant) : constant(constant) {}
  Number(mlir::Value value) : value(value) {}

  std::optional<double> constant;
  mlir::Value value;

  bool is(double number) const { return constant && *constant == number; }
};

/// Builds the arithmetic for one position of a list op, or for the chunk of a
/// unit. Numbers live in one of two places: as *scalars* (0-dimensional, or a
/// table with one entry per segment), where they are f64, or as *elements*, which
/// meet those of the position's tensors, or of the chunk.
class UpdateBuilder {
public:
  /// `stored` is the type of the tensors; elements are computed in f32 where that is f16 or bf16. `unit` is null in
  /// list form. `groups` are the param groups: of the position, or of each segment.
  UpdateBuilder(mlir::RewriterBase &rewriter, mlir::Location loc, mlir::RankedTensorType stored,
                mlir::FlatSymbolRefAttr unit, llvm::ArrayRef<int64_t> groups)
      : rewriter(rewriter), loc(loc), type(stored.clone(aten::getComputeType(stored.getElementType()))), unit(unit),
        groups(groups) {}

  // Scalars.

  /// One value per param group.
  Number fromGroups(llvm::ArrayRef<double> perGroup);
  Number fromGroups(mlir::ValueRange perGroup);
  /// One value per segment (or, in list form, the only one).
  Number fromSegments(llvm::ArrayRef<double> perSegment);
  mlir::Value toF64(mlir::Value value);
  /// A table of ones.
  mlir::Value ones(int64_t segments);
  /// True for a table of the unit, false for a chunk and in list form.
  bool isTable(mlir::Value value);

  /// A scalar as elements: in their type, spread over segments.
  Number toElements(Number scalar);
  /// The value in another element type.
  mlir::Value cast(mlir::Value value, mlir::Type elementType);
  /// Any list operand as elements.
  mlir::Value align(mlir::Value operand);
  /// What was computed, rounded to the element type of `stored`.
  mlir::Value round(mlir::Value value, mlir::Type stored);
  /// A divisor that is 0 in the padding of the chunk: the operand as elements, with 1 in the padding.
  mlir::Value alignDivisor(mlir::Value operand);

  // Arithmetic; the result has the type of the operand with more dimensions.

  mlir::Value add(mlir::Value a, Number b, double alpha = 1);
  mlir::Value sub(mlir::Value a, Number b, double alpha = 1);
  /// b - a
  mlir::Value rsub(mlir::Value a, double b);
  mlir::Value mul(mlir::Value a, Number b);
  mlir::Value div(mlir::Value a, Number b);
  Number mul(Number a, Number b);
  mlir::Value pow(Number base, mlir::Value exponent);
  mlir::Value pow(mlir::Value base, Number exponent);
  mlir::Value lerp(mlir::Value from, mlir::Value to, Number weight);
  /// a + value * b * c, a + value * b / c
  mlir::Value addcmul(mlir::Value a, mlir::Value b, mlir::Value c, Number value);
  mlir::Value addcdiv(mlir::Value a, mlir::Value b, mlir::Value c, Number value);
  template <typename OpTy>
  mlir::Value unary(mlir::Value a) {
    return OpTy::create(rewriter, loc, a.getType(), a);
  }
  template <typename OpTy>
  mlir::Value binary(mlir::Value a, mlir::Value b) {
    return OpTy::create(rewriter, loc, larger(a, b), a, b);
  }
  mlir::Value clamp(mlir::Value a, std::optional<double> min, std::optional<double> max);

  bool isChunk() const { return unit != nullptr; }
  mlir::RankedTensorType getType() const { return type; }

private:
  static mlir::RankedTensorType larger(mlir::Value a, mlir::Value b);
  mlir::Attribute attr(double number) { return rewriter.getF64FloatAttr(number); }
  mlir::RankedTensorType tableType(mlir::Type elementType, int64_t segments);
  mlir::Value constantTable(llvm::ArrayRef<double> perSegment);
  mlir::Value broadcast(mlir::Value table);

  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  mlir::RankedTensorType type;
  mlir::FlatSymbolRefAttr unit;
  llvm::ArrayRef<int64_t> groups;
};

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_OPTIMIZER_UPDATEBUILDER_H
