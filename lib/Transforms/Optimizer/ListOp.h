//===- ListOp.h - Merging list ops ------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_OPTIMIZER_LISTOP_H
#define SPMD_LIB_TRANSFORMS_OPTIMIZER_LISTOP_H

#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace spmd {

/// The op if it is a list op of which positions can be added to and taken away: one in list form with one result per
/// position, and, if it shares a tensor, one number for all of them.
aten::ListOpInterface asMergeableList(mlir::Operation *op);

/// A list op `name` ("aten._foreach_mul.List") with one result per type; `shared` may be null.
aten::ListOpInterface createListOp(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                                   llvm::ArrayRef<llvm::SmallVector<mlir::Value>> lists, mlir::Value shared,
                                   mlir::TypeRange types, llvm::ArrayRef<mlir::NamedAttribute> attrs);

/// Moves what defines `value`, with all it needs, before `point` in the same
/// block; fails without a change if it needs `point` itself.
llvm::LogicalResult hoistBefore(mlir::Value value, mlir::Operation *point);

/// Merges isomorphic chains of pointwise ops, one chain per parameter, into
/// `_foreach_map` ops.
void mergeTensorOps(mlir::func::FuncOp func, mlir::RewriterBase &rewriter);
/// Merges equal list ops of several param groups: the later ones move to the
/// place of the first.
void mergeListOps(mlir::Block &block, mlir::RewriterBase &rewriter);
/// Merges the fused optimizers of several param groups.
void mergeFusedOps(mlir::Block &block, mlir::RewriterBase &rewriter);
/// Extends list ops by identities, so that no list takes some entries from a
/// list op and some from elsewhere.
void completeListOps(mlir::Block &block, mlir::RewriterBase &rewriter);

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_OPTIMIZER_LISTOP_H
