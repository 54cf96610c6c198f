//===- AtenVerify.h - Verifiers of op families ------------------*- C++ -*-===//
//
// The functions that `verifier` in the .td files names. Constraints are
// numbered per family; tests cite the numbers. All of them hold for the shapes
// a rank computes on as well as for global ones: encodings are ignored.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENVERIFY_H
#define SPMD_DIALECTS_ATEN_ATENVERIFY_H

#include "mlir/IR/Operation.h"

namespace spmd::aten {

/// What a pointwise op's result element type is.
enum class ResultType {
  promoted, ///< PyTorch's promotion of all operands and scalars
  floating, ///< the same; f32 if that is no float
  quotient, ///< floating without a rounding_mode, else promoted
  boolean,  ///< i1
  first,    ///< the first operand's
  selected, ///< the promotion of the second and third operand; the first is i1
};

/// The element type of a pointwise op's result, by the rule `kind`.
mlir::Type getResultElementType(mlir::Operation *op, ResultType kind);

// What verifiers share.

llvm::SmallVector<int64_t> shapeOf(mlir::Value value);
/// An error of `op` unless `value` is absent or has this shape.
llvm::LogicalResult expectShape(mlir::Operation *op, mlir::Value value, llvm::ArrayRef<int64_t> shape);

llvm::LogicalResult noConstraints(mlir::Operation *op);
/// C1: the result has the broadcast shape. C2: and the element type.
llvm::LogicalResult verifyPointwise(mlir::Operation *op, ResultType kind = ResultType::promoted);

// Views and pieces (AtenVerifyView.cpp); D: element types agree.

/// C1: as many elements as the operand. C2: the result's shape is `size`.
llvm::LogicalResult verifyView(mlir::Operation *op);
/// C1: the dimension exists. C2: the result has the operand's shape with a
/// dimension of size 1 inserted or, if its size is 1, removed.
llvm::LogicalResult verifyUnsqueeze(mlir::Operation *op);
llvm::LogicalResult verifySqueeze(mlir::Operation *op);
/// C1: same shape. C2: the result's element type is `dtype`.
llvm::LogicalResult verifyCast(mlir::Operation *op);
/// C1: `dims` is a permutation. C2: the result's shape is the permuted one.
llvm::LogicalResult verifyPermute(mlir::Operation *op);
/// C1: each dimension is the operand's, or that is 1 or missing. C2: `size`.
llvm::LogicalResult verifyExpand(mlir::Operation *op);
/// C1: the dimension exists. C2: 0 <= start <= end <= its size and step >= 1.
/// C3: the piece has the rows, the whole the shape.
llvm::LogicalResult verifySlice(mlir::Operation *op);
/// C1: dimension and index exist. C2: the row lacks the dimension.
llvm::LogicalResult verifySelect(mlir::Operation *op);
/// C1: the dimension exists. C2: the pieces have the sizes, and fill it.
llvm::LogicalResult verifySplit(mlir::Operation *op);
/// C1: the dimension exists. C2: the tensors differ only in it, and fill it.
llvm::LogicalResult verifyCat(mlir::Operation *op);
/// C1: equal tensors. C2: the result has them as rows of a new dimension.
llvm::LogicalResult verifyStack(mlir::Operation *op);
/// C1: dimensions exist and are named once. C2: the result is like the operand.
llvm::LogicalResult verifyFlip(mlir::Operation *op);
/// C1: the result's shape is `size`.
llvm::LogicalResult verifyFull(mlir::Operation *op);
/// C1: a non-zero step. C2: as many elements as steps from start below end.
llvm::LogicalResult verifyArange(mlir::Operation *op);
/// C1: the result is 0-dimensional.
llvm::LogicalResult verifyScalarTensor(mlir::Operation *op);
/// C1: value and result agree in shape and element type.
llvm::LogicalResult verifyConstant(mlir::Operation *op);

// Rows by number, sorting (AtenVerifyIndexing.cpp).

/// C1: an index of i64 or i32. C2: batch dimensions exist and agree. C3: the
/// result has the batch, the index's and the row's dimensions.
llvm::LogicalResult verifyGatherRows(mlir::Operation *op);
/// C1, C2 as above. C3: src has the batch, the index's and the row's
/// dimensions, self and result `rows` rows. C4: a known reduction; without self
/// "set" or "sum".
llvm::LogicalResult verifyScatterRows(mlir::Operation *op);
/// C1: integers. C2: the result is like the operand. C3: low <= high.
llvm::LogicalResult verifyCheckIndex(mlir::Operation *op);
/// C1: the dimension exists. C2: values are like the operand, indices i64.
llvm::LogicalResult verifySort(mlir::Operation *op);
/// C1 a kind that there is, of numbers, avg of floating ones; C2 ranks are positive; C3 the result is that of so many
/// ranks.
llvm::LogicalResult verifyAmongRanks(mlir::Operation *op);
/// C1 arguments are numbers or tensors, C2 a tensor for each input, C3 there is a result, C4 the sharding fits the
/// shapes.
llvm::LogicalResult verifyCustomCall(mlir::Operation *op);

// The others (AtenVerifyHeavy.cpp).

/// C1: `dim` is ascending, without repetition, in range. C2: results have the
/// remaining dimensions. C3: `dtype` is the element type.
llvm::LogicalResult verifyReduction(mlir::Operation *op);
/// C1: the dimension exists. C2: results have the operand's shape.
llvm::LogicalResult verifyScan(mlir::Operation *op);
/// C1: the contracted dimensions agree. C2: the result has the others; a bias
/// is broadcast against it. C3: element types agree.
llvm::LogicalResult verifyContraction(mlir::Operation *op);
/// C1: the contracted dimensions agree. C2: there is a group for each row. C3:
/// the result has the other dimensions. C4: element types agree.
llvm::LogicalResult verifyGrouped(mlir::Operation *op);
/// C1: normalized_shape is the input's last dimensions. C2: statistics have
/// ones there. C3: weight and bias, and gradients, have these dimensions.
llvm::LogicalResult verifyLayerNorm(mlir::Operation *op);
/// C1: integer indices. C2: rows of the table, one per index.
llvm::LogicalResult verifyEmbedding(mlir::Operation *op);
/// C1: same shapes. C2: the dimension exists.
llvm::LogicalResult verifySoftmax(mlir::Operation *op);
/// C1: reduction is 0, 1 or 2. C2: classes are the last of one or two
/// dimensions, target is i64 without it. C3: results by reduction.
llvm::LogicalResult verifyNllLoss(mlir::Operation *op);
/// C1: reduction is 0, 1 or 2. C2: the result is 0-dimensional if reduced.
llvm::LogicalResult verifyMseLoss(mlir::Operation *op);
/// C1: rank 4, equal batch; heads of key and value equal and, with enable_gqa,
/// a divisor of the query's. C2: results. C3: the mask broadcasts.
llvm::LogicalResult verifyAttention(mlir::Operation *op);
/// C1: seed and step are i64 scalars. C2: the index is i64, the result f32 of its
/// shape. C3: word is 0 to 3.
llvm::LogicalResult verifyPhiloxUniform(mlir::Operation *op);

// Norms and windows (AtenVerifyWindow.cpp).

/// C1: normalized_shape is the input's last dimensions. C2: rstd has ones there.
/// C3: weight and its gradient have these dimensions.
llvm::LogicalResult verifyRmsNorm(mlir::Operation *op);
/// C1: [batch, channels, 1 to 3 spatial dimensions], stride, padding, dilation
/// and output_padding with an entry per spatial dimension. C2: channels of input
/// and weight fit the groups. C3: results.
llvm::LogicalResult verifyConvolution(mlir::Operation *op);
/// C1: as convolution, padding at most half the kernel. C2: i64 indices of the
/// output's shape, which the windows give.
llvm::LogicalResult verifyMaxPool(mlir::Operation *op);
/// C1: image and columns fit the windows.
llvm::LogicalResult verifyIm2col(mlir::Operation *op);

/// C1: results have the types of the first list. C2: in list form, lists of
/// scalars have an entry per position. C3: in list form, operands broadcast. C4:
/// all lists have one length.
llvm::LogicalResult verifyForeach(mlir::Operation *op);
/// C1: `op` is a pointwise op with one result. C2: the operands are lists of
/// one length, the number of results. C3: in list form, the operands of a
/// position are scalars or have the result's shape.
llvm::LogicalResult verifyForeachMap(mlir::Operation *op);
/// C1: all lists have as many entries as the parameters, or none. C2: entries
/// of one position agree in shape with the parameter (steps are scalars or
/// tables). C3: hyper-parameters have an entry per group, groups are theirs.
llvm::LogicalResult verifyFused(mlir::Operation *op);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ATENVERIFY_H
