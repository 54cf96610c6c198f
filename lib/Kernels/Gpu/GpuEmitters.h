//===- GpuEmitters.h - the GPU kernel of each kernel op ---------*- C++ -*-===//
//
// Each fills the kernel that `b` has started with the code of its op and ends it with its launch shape.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H
#define SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H

#include "Device.h"
#include "GpuBuilder.h"

namespace spmd::kernel {

/// Threads of a block, and blocks.
struct LaunchShape {
  int64_t block, grid;
};

/// Where a cluster finds its operands and results, and the number of the block among those that run it: alone in its
/// kernel, the number in the grid.
struct GpuClusterArguments {
  mlir::SmallVector<mlir::Value> operands, results;
  mlir::Value block;
};

/// The code of a cluster as simplifyCluster leaves it, without ending the kernel; returns the blocks it needs.
mlir::FailureOr<LaunchShape> emitGpuClusterBlocks(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                                  const Device &device);

mlir::LogicalResult emitGpuCluster(GpuBuilder &b, ClusterOp op, const Device &device);
mlir::LogicalResult emitGpuSegmented(GpuBuilder &b, SegmentedOp op, const Device &device);
mlir::LogicalResult emitGpuAttention(GpuBuilder &b, AttentionOp op, const Device &device);
mlir::LogicalResult emitGpuAttentionBackward(GpuBuilder &b, AttentionBackwardOp op, const Device &device);
mlir::LogicalResult emitGpuGatherRows(GpuBuilder &b, GatherRowsOp op, const Device &device);
mlir::LogicalResult emitGpuScatterRows(GpuBuilder &b, ScatterRowsOp op, const Device &device);
mlir::LogicalResult emitGpuGroupedGemm(GpuBuilder &b, GroupedGemmOp op, const Device &device);
mlir::LogicalResult emitGpuGroupedOuter(GpuBuilder &b, GroupedOuterOp op, const Device &device);
mlir::LogicalResult emitGpuSort(GpuBuilder &b, SortOp op, const Device &device);
mlir::LogicalResult emitGpuCopy(GpuBuilder &b, CopyOp op, const Device &device);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H
