//===- AtenRules.h - Bodies of the ops' interface methods -------*- C++ -*-===//
//
// The functions that `rule`, `flops` and `localizer` in the .td files name.
// They read operands, results and attributes through the generic Operation
// interface where one function serves a family.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENRULES_H
#define SPMD_DIALECTS_ATEN_ATENRULES_H

#include "dialects/Aten/ShardingRule.h"
#include "mlir/IR/Operation.h"

namespace spmd::aten {

using Rule = llvm::FailureOr<ShardingRule>;

// Sharding rules (ShardingRules.cpp).

/// No rule: the op runs on replicated operands only.
Rule noRule(mlir::Operation *op);

/// Operands are broadcast against the result, aligned at the right.
Rule pointwiseRule(mlir::Operation *op, Linearity linearity = Linearity::none,
                   llvm::ArrayRef<unsigned> multilinearOperands = {});

/// A cast is linear unless it rounds to an integer or bool.
Rule castRule(mlir::Operation *op);

/// Dimensions as letters, operands separated by commas: "mk,kn->mn". A letter
/// that the results lack is summed over.
Rule einsumRule(mlir::Operation *op, llvm::StringRef dims, Linearity linearity = Linearity::none,
                llvm::ArrayRef<unsigned> multilinearOperands = {});

/// The dimensions that attribute `dim` names are whole, in all operands and
/// results alike; the others are factors.
Rule wholeDimRule(mlir::Operation *op, Linearity linearity = Linearity::none);

/// The dimensions that `dim` names are contracted with `kind`.
Rule reductionRule(mlir::Operation *op, ReductionKind kind, Linearity linearity = Linearity::none);
/// Reduced dimensions whole, the others factors.
Rule wholeReductionRule(mlir::Operation *op, Linearity linearity = Linearity::none);
/// A mean over dimensions that are whole: a divisor counts global rows.
Rule meanRule(mlir::Operation *op);
/// norm2 for order 2, max for inf, min for -inf; other orders keep dims whole.
Rule normRule(mlir::Operation *op);

// ShardingRulesView.cpp

Rule permuteRule(mlir::Operation *op);
/// Dimensions that expand adds or repeats are factors of their own.
Rule expandRule(mlir::Operation *op);
/// slice, slice_backward, slice_scatter: a slice of everything keeps the
/// factor of its dimension, any other needs it whole.
Rule sliceRule(mlir::Operation *op);
/// select and its relatives: one side lacks the dimension.
Rule selectRule(mlir::Operation *op);
Rule stackRule(mlir::Operation *op);
/// Flipped dimensions are whole.
Rule flipRule(mlir::Operation *op);
/// A constant tensor of any local shape is the global one's shard.
Rule fullRule(mlir::Operation *op);

// ShardingRulesHeavy.cpp

/// The bias would be added once per rank: k is whole.
Rule addmmRule(mlir::Operation *op);
/// The matrices of all groups are whole.
Rule groupedMmRule(mlir::Operation *op);
/// Rows are contracted.
Rule groupedOuterRule(mlir::Operation *op);
Rule layerNormRule(mlir::Operation *op);
/// The weight and bias gradients contract the leading dimensions.
Rule layerNormBackwardRule(mlir::Operation *op);
Rule embeddingRule(mlir::Operation *op);
Rule embeddingBackwardRule(mlir::Operation *op);
/// Losses have no rule with reduction mean: their count is the local one.
Rule nllLossRule(mlir::Operation *op);
Rule nllLossBackwardRule(mlir::Operation *op);
Rule mseLossRule(mlir::Operation *op);
Rule mseLossBackwardRule(mlir::Operation *op);
/// Attention is independent per batch row; none with dropout.
Rule attentionRule(mlir::Operation *op);

/// What the operator's declaration says (AtenCustomCall.cpp).
Rule customCallRule(mlir::Operation *op);

// ShardingRulesIndexing.cpp

/// Batch dimensions, the index's and the row's are factors; rows are whole.
Rule gatherRowsRule(mlir::Operation *op);
/// The same; a sum onto zeros contracts the index's dimensions.
Rule scatterRowsRule(mlir::Operation *op);
/// Pointwise; padding holds a number that passes.
Rule checkIndexRule(mlir::Operation *op);
// ShardingRulesWindow.cpp

/// Leading dimensions are factors; the weight gradient contracts them.
Rule rmsNormRule(mlir::Operation *op);
/// The batch is a factor.
Rule convolutionRule(mlir::Operation *op);
/// The weight and bias gradients contract the batch.
Rule convolutionBackwardRule(mlir::Operation *op);
/// Batch and channels are factors, spatial dimensions whole.
Rule windowRule(mlir::Operation *op, Linearity linearity = Linearity::none,
                llvm::ArrayRef<unsigned> multilinearOperands = {});
/// The first dimension is a factor, the others are whole.
Rule batchRule(mlir::Operation *op, Linearity linearity);

// Cost (AtenCost.cpp).

double noFlops(mlir::Operation *op);
/// One operation per element of the first result, or of the first operand.
double resultElements(mlir::Operation *op, double each = 1);
double operandElements(mlir::Operation *op, double each = 1);
/// 2 m n k of a matrix product whose last two operands are the matrices.
double contractionFlops(mlir::Operation *op);
/// Every row meets one matrix.
double groupedFlops(mlir::Operation *op);
/// One operation per element of src, none if it only moves them.
double scatterFlops(mlir::Operation *op);
/// n log n comparisons per row.
double sortFlops(mlir::Operation *op);
/// Two products forward, five backward; half of it if causal.
double attentionFlops(mlir::Operation *op);
/// 2 per multiply-add of a window, once per gradient in backward.
double convolutionFlops(mlir::Operation *op);

// Localization (AtenLocalize.cpp).

/// For ops without size attributes: nothing to do.
llvm::LogicalResult keepAttributes(mlir::Operation *op, mlir::TypeRange types);
/// For ops that make one certain tensor: only its own shape will do.
llvm::LogicalResult keepShape(mlir::Operation *op, mlir::TypeRange types);
/// Sets a list of sizes to the shape of the first result.
llvm::LogicalResult localizeShape(mlir::Operation *op, llvm::StringRef attr, mlir::TypeRange types);
/// A slice over a whole dimension, or whole parts of it that are cut alike,
/// follows that dimension's local size; so do the pieces of a split.
llvm::LogicalResult localizeSplit(mlir::Operation *op, mlir::TypeRange types);
llvm::LogicalResult localizeSlice(mlir::Operation *op, mlir::TypeRange types);

// Attributes that state sizes (AtenLocalize.cpp).

/// `name` is `attr`, and that the shape of the first result.
bool isShape(mlir::Operation *op, llvm::StringRef name, llvm::StringRef attr);
/// `name` is the end of a slice of a whole dimension, or of what undoes one.
bool isEndOfWhole(mlir::Operation *op, llvm::StringRef name);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ATENRULES_H
