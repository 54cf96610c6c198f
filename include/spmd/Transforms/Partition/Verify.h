//===- Verify.h - what must hold of a rank's program ------------*- C++ -*-===//
//
// The checks of spmd-verify-partition, which hold as well, with starts and waits in place of synchronous collectives,
// until the sharding states are stripped.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_TRANSFORMS_PARTITION_VERIFY_H
#define SPMD_TRANSFORMS_PARTITION_VERIFY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace spmd {

/// What spmd-record-values writes: hashes of gradients and results. It goes when the sharding states do.
constexpr llvm::StringLiteral kRecordedValuesAttr = "spmd.recorded_values";

/// True if the types of the step say how values are sharded.
bool hasStates(mlir::func::FuncOp step);

/// Each op runs in states that its rule allows, each collective starts from the state that it needs, and results are in
/// the states that callers take.
mlir::LogicalResult verifyStates(mlir::func::FuncOp step);

/// What belongs to a shard unit stays with it: gathers send its parameters, its gradients are packed and reduced once
/// by collectives of its own, and its state is computed from chunks of its own.
mlir::LogicalResult verifyUnits(mlir::func::FuncOp step);

/// Gradients and results are the expressions that spmd-record-values found, if it has run.
mlir::LogicalResult verifyRecordedValues(mlir::func::FuncOp step);

} // namespace spmd

#endif // SPMD_TRANSFORMS_PARTITION_VERIFY_H
