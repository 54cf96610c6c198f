//===- CollectKernels.h - the kernels of a module ----------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_COLLECTKERNELS_H
#define SPMD_LIB_KERNELS_COLLECTKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// The first op of each symbol in `module`, in program order. An op without a symbol is an error.
mlir::FailureOr<llvm::SmallVector<mlir::Operation *>> collectKernels(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_COLLECTKERNELS_H
