//===- LowerGpuKernels.h - kernel ops to kernels for GPUs -------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_LOWERGPUKERNELS_H
#define SPMD_LIB_KERNELS_GPU_LOWERGPUKERNELS_H

#include "Device.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spmd::kernel {

/// Adds one kernel (see [Note: a kernel for GPUs] in GpuBuilder.h) to `target` for `op`, named by its symbol.
mlir::LogicalResult lowerGpuKernel(mlir::Operation *op, mlir::gpu::GPUModuleOp target, const Device &device);

/// A module that holds the `gpu.module @kernels` of all kernels of `module`, in order of first use.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> lowerGpuKernels(mlir::ModuleOp module, const Device &device);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_LOWERGPUKERNELS_H
