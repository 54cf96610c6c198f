//===- GpuEmitters.h - the GPU kernel of each kernel op ---------*- C++ -*-===//
//
// An emitter fills the kernel that its builder has started with the code of its op and ends it with its launch shape.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H
#define SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H

#include "../EmitterTable.h"
#include "Device.h"
#include "GpuBuilder.h"

namespace spmd::kernel {

using GpuEmitters = EmitterTable<GpuBuilder, const Device &>;

/// Adds the emitters of a file, Emit*.cpp.
#define SPMD_GPU_EMITTERS(FAMILY) void addGpu##FAMILY##Emitters(GpuEmitters &emitters);
#include "lib/Kernels/GpuEmitters.inc"

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


} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_GPUEMITTERS_H
