//===- LowerKernels.h - kernel ops to functions of loops --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H
#define SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H

#include "Cpu.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Adds one function of loops to `target` for `op`, named by its symbol.
mlir::LogicalResult lowerKernel(mlir::Operation *op, mlir::ModuleOp target, const Cpu &cpu);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H
