//===- ListOp.h - A list op as parallel lists -------------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_OPTIMIZER_LISTOP_H
#define SPMD_LIB_TRANSFORMS_OPTIMIZER_LISTOP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace spmd {

/// A `_foreach` op taken apart: its lists have one entry per result; `.Tensor`
/// overloads have one more tensor, for the whole list.
struct ListOp {
  mlir::Operation *op;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> lists;
  mlir::Value shared;

  explicit ListOp(mlir::Operation *op);

  /// "mul" of "aten._foreach_mul.Scalar".
  llvm::StringRef getBase() const;
  /// "Scalar"; empty if there is none.
  llvm::StringRef getOverload() const;
  size_t size() const { return op->getNumResults(); }

  /// True for `_foreach` ops in list form that this struct can describe.
  static bool classof(mlir::Operation *op);
};

/// A list op `name` ("_foreach_mul.List") with one result per type.
mlir::Operation *createListOp(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
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
