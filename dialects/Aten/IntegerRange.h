//===- IntegerRange.h - Between which bounds integers lie -------*- C++ -*-===//
//
// [Note: integer ranges]
// Every op of the dialect has MLIR's InferIntRangeInterface, of which the ranges are
// those of a tensor's elements. Most need say nothing for it: one number everywhere is
// that number, moved elements are those of the operands, and of a scalar body MLIR
// infers the range, op by op. So what an op of another project computes is bounded
// too. The others have `integerRanges` in the .td files, an expression over the
// operation `op` and the `ranges` of its operands: one for each result, or for all.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_INTEGERRANGE_H
#define SPMD_DIALECTS_ATEN_INTEGERRANGE_H

#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

#include <optional>

namespace spmd::aten {

/// The whole numbers from `low` to `high`, both included.
struct IntegerRange {
  int64_t low = 0, high = 0;
};

/// Nothing where there are no bounds but those of the type. Truth values always have bounds.
using KnownRange = std::optional<IntegerRange>;

/// What is known of values of `type`, that of elements; nothing of what is no integer.
KnownRange getKnownRange(const mlir::IntegerValueRange &range, mlir::Type type);
/// The same for MLIR: all integers of the type where nothing is known, or where not all of `range` fit in it.
mlir::IntegerValueRange getValueRange(KnownRange range, mlir::Type type);

/// The op hands on whole numbers. A conversion between widths of integers does: row numbers fit in all of them.
bool movesIntegers(mlir::Operation *op);

using InferRangesFn = llvm::function_ref<llvm::SmallVector<KnownRange>(llvm::ArrayRef<KnownRange> ranges)>;
/// Says of each result what `infer` makes of what is known of the operands; without one it is `rangeOfElements`.
void inferIntegerRanges(mlir::Operation *op, llvm::ArrayRef<mlir::IntegerValueRange> operands,
                        mlir::SetIntLatticeFn setRange, InferRangesFn infer = nullptr);

// For `integerRanges` in the .td files.

/// What follows from the number that all elements are, from their being moved, or from the scalar body.
KnownRange rangeOfElements(mlir::Operation *op, llvm::ArrayRef<KnownRange> ranges);
/// Of a Scalar attribute that is whole.
KnownRange rangeOfNumber(mlir::Attribute number);
KnownRange rangeFrom(int64_t low, int64_t high);
KnownRange unite(KnownRange a, KnownRange b);
/// start, start + step, …: `count` numbers.
KnownRange rangeOfProgression(mlir::Attribute start, mlir::Attribute step, int64_t count);
/// The elements of a constant.
KnownRange rangeOfConstant(mlir::Attribute value);
/// A remainder with the sign of `divisor`; what the body says is wider, since it knows no two values together.
KnownRange rangeOfRemainder(mlir::Operation *op, llvm::ArrayRef<KnownRange> ranges, KnownRange divisor);
/// Sums of at most `count` elements.
KnownRange rangeOfSums(KnownRange element, int64_t count);
/// Where something is along dimension `dim` of the first operand.
KnownRange rangeOfPlaces(mlir::Operation *op, int64_t dim);
/// The size of dimension `dim` of the first operand.
int64_t countAlong(mlir::Operation *op, int64_t dim);
/// How many elements of the first operand go into each of the result.
int64_t countReduced(mlir::Operation *op);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_INTEGERRANGE_H
