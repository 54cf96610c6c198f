//===- Propagate.h - the states one op runs in ------------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_PROPAGATE_H
#define SPMD_LIB_TRANSFORMS_PARTITION_PROPAGATE_H

#include "States.h"
#include "dialects/Aten/AtenInterfaces.h"

namespace spmd::partition {

/// How an op runs: in which state it needs each operand, what must be in padded
/// rows, and in which states its results are.
struct OpStates {
  llvm::SmallVector<AxisState> operands;
  llvm::SmallVector<AxisState> results;
  /// Per operand: fill padded rows with this first.
  llvm::SmallVector<std::optional<double>> fill;
};

/// Chooses the states of an op from those its operands are in. `staysPartial`:
/// all results are gradient-bound, so partial operands should pass through.
/// Fails with an error that names the op and the hint when the op has no rule and
/// an operand is not replicated.
mlir::FailureOr<OpStates> propagate(mlir::Operation *op, llvm::ArrayRef<AxisState> operands, bool staysPartial,
                                    int64_t ranks);

/// The element that changes nothing when it is combined.
double getNeutral(ReduceKind kind);

/// The kind that combines partial norms of the op's `ord`: norm2 for 2, max for
/// infinity, nothing for others.
std::optional<ReduceKind> getNormKind(mlir::Operation *op);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_PROPAGATE_H
