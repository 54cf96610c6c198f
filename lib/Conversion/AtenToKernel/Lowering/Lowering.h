//===- Lowering.h - ops of a step as graph nodes ----------------*- C++ -*-===//
//
// One function per family of ops. Each takes an op apart into nodes and binds the op's results, or says that the op is
// none of its own.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_LOWERING_LOWERING_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_LOWERING_LOWERING_H

#include "../Graph/GraphBuilder.h"

#include "dialects/Aten/TensorType.h"
#include "mlir/IR/BuiltinTypes.h"

namespace spmd::fusion {

/// Nothing: the op belongs to another family. Failure: an error was emitted on the op.
using Lowered = std::optional<llvm::LogicalResult>;

Lowered lowerPointwiseOp(GraphBuilder &g, mlir::Operation *op);
/// Views, concatenations, constants.
Lowered lowerViewOp(GraphBuilder &g, mlir::Operation *op);
/// sum, mean, amax, norms, variance.
Lowered lowerReductionOp(GraphBuilder &g, mlir::Operation *op);
/// Cumulative sums, products and extremes; products and extremes of one dim.
Lowered lowerScanOp(GraphBuilder &g, mlir::Operation *op);
/// softmax and layer norm, with their gradients.
Lowered lowerNormalizationOp(GraphBuilder &g, mlir::Operation *op);
/// Losses and their gradients.
Lowered lowerLossOp(GraphBuilder &g, mlir::Operation *op);
/// Matrix products, row gathers and scatters.
Lowered lowerHeavyOp(GraphBuilder &g, mlir::Operation *op);
/// Gathers, scatters, sorting, checks of row numbers.
Lowered lowerIndexingOp(GraphBuilder &g, mlir::Operation *op);
/// Convolutions, max pools, im2col.
Lowered lowerWindowOp(GraphBuilder &g, mlir::Operation *op);
Lowered lowerAttentionOp(GraphBuilder &g, mlir::Operation *op);
/// Collectives, pack and unpack, rank-dependent slices and masks, tables of a unit.
Lowered lowerSpmdOp(GraphBuilder &g, mlir::Operation *op);

/// `ref`, of shape [batch, rows, columns], or a copy of it, as a GEMM reads it.
Ref asGemmOperand(GraphBuilder &g, Ref ref);
/// result[i] = a[i] * b[i] for refs of shape [batch, m, k] and [batch, k, n]; as [batch, m, n].
Ref buildGemm(GraphBuilder &g, Ref a, Ref b);

/// All dims of a tensor of this rank.
llvm::SmallVector<int64_t> allDims(int64_t rank);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_LOWERING_LOWERING_H
