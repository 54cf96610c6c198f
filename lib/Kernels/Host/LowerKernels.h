//===- LowerKernels.h - kernel ops to functions of loops --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H
#define SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Accumulators of products (see KernelBuilder) on a CPU: 32 registers of 16 lanes, or 16 of 8.
inline int64_t getAccumulators(llvm::StringRef cpu) { return cpu == "x86-64-v4" ? 16 : 6; }

/// Adds one function of loops to `target` for `op`, named by its symbol.
mlir::LogicalResult lowerKernel(mlir::Operation *op, mlir::ModuleOp target, int64_t accumulators);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_LOWERKERNELS_H
