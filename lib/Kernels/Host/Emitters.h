//===- Emitters.h - loops of each kernel op ---------------------*- C++ -*-===//
//
// Each fills the function that `b` has started with the loops of its op, for trips [begin, end).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_HOST_EMITTERS_H
#define SPMD_LIB_KERNELS_HOST_EMITTERS_H

#include "KernelBuilder.h"

namespace spmd::kernel {

mlir::LogicalResult emitCluster(KernelBuilder &b, ClusterOp op);
mlir::LogicalResult emitSegmented(KernelBuilder &b, SegmentedOp op);
mlir::LogicalResult emitAttention(KernelBuilder &b, AttentionOp op);
mlir::LogicalResult emitAttentionBackward(KernelBuilder &b, AttentionBackwardOp op);
mlir::LogicalResult emitGatherRows(KernelBuilder &b, GatherRowsOp op);
mlir::LogicalResult emitScatterRows(KernelBuilder &b, ScatterRowsOp op);
mlir::LogicalResult emitGroupedGemm(KernelBuilder &b, GroupedGemmOp op);
mlir::LogicalResult emitGroupedOuter(KernelBuilder &b, GroupedOuterOp op);
mlir::LogicalResult emitSort(KernelBuilder &b, SortOp op);
mlir::LogicalResult emitCustomCall(KernelBuilder &b, CustomCallOp op);
mlir::LogicalResult emitCopy(KernelBuilder &b, CopyOp op);

/// Where a cluster finds its operands and results, and which trips to run.
struct ClusterArguments {
  mlir::SmallVector<mlir::Value> operands, results;
  mlir::Value begin, end;
};

/// The loops of a cluster as simplifyCluster leaves it, without dims of size 1.
mlir::LogicalResult emitClusterLoops(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_EMITTERS_H
