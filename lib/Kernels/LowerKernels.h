//===- LowerKernels.h - kernel ops to functions of loops --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_LOWERKERNELS_H
#define SPMD_LIB_KERNELS_LOWERKERNELS_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// The first op of each symbol in `module`, in program order. An op without a symbol is an error.
mlir::FailureOr<llvm::SmallVector<mlir::Operation *>> collectKernels(mlir::ModuleOp module);

/// Adds one function of loops to `target` for `op`, named by its symbol.
mlir::LogicalResult lowerKernel(mlir::Operation *op, mlir::ModuleOp target);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_LOWERKERNELS_H
