//===- ListOps.h - positions of optimizer list ops --------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_LISTOPS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_LISTOPS_H

#include "mlir/IR/Operation.h"

namespace spmd::partition {

/// A `_foreach_*` or `_fused_*` op in list form, taken apart. Position i of all
/// lists belongs to one parameter.
struct ListOp {
  mlir::Operation *op;
  /// Number of positions.
  int64_t length = 0;
  /// Parallel operand lists; an empty list has no positions.
  llvm::SmallVector<mlir::OperandRange> operandLists;
  /// Parallel result lists.
  llvm::SmallVector<mlir::ResultRange> resultLists;
  /// Operands that belong to no position (a scalar for all, lr per group), and the
  /// number of operand lists that come before them.
  mlir::OperandRange shared;
  int64_t listsBeforeShared = 0;
  bool isNorm = false;

  /// True for `aten._foreach_*` and `aten._fused_*`.
  static bool isListOp(mlir::Operation *op);
  /// The parts of a list op.
  static ListOp get(mlir::Operation *op);
};

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_LISTOPS_H
