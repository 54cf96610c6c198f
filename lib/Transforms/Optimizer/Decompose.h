//===- Decompose.h - Ops as smaller ops -------------------------*- C++ -*-===//
//
// Each decompose function replaces `op` through `rewriter`, whose insertion point is
// before it, or emits an error and fails.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_OPTIMIZER_DECOMPOSE_H
#define SPMD_LIB_TRANSFORMS_OPTIMIZER_DECOMPOSE_H

#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace spmd {

/// aten._fused_adam, _fused_adamw, _fused_sgd.
llvm::LogicalResult decomposeFused(mlir::Operation *op, mlir::RewriterBase &rewriter);

/// List ops but for the fused ones: aten._foreach_*.
llvm::LogicalResult decomposeForeach(aten::ListOpInterface op, mlir::RewriterBase &rewriter);

/// A gradient op by its name; see `isDecomposableGradient`.
llvm::LogicalResult decomposeGradient(mlir::Operation *op, mlir::RewriterBase &rewriter);

/// Names without "aten." that decomposeGradient knows.
llvm::ArrayRef<llvm::StringLiteral> getDecomposableGradients();

/// Sets the padding of the flat buffers that `func` returns to zero where it may be something else; `setSource` is
/// told which op the next ones are made for. See [Note: padding].
void clearPadding(mlir::func::FuncOp func, mlir::RewriterBase &rewriter,
                  llvm::function_ref<void(mlir::Operation *)> setSource);

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_OPTIMIZER_DECOMPOSE_H
