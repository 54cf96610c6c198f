//===- ConvertToNVVM.h - gpu.func to the LLVM dialect ------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_CONVERTTONVVM_H
#define SPMD_LIB_KERNELS_GPU_CONVERTTONVVM_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Dialects and translations that convertToNVVM needs; a pass that calls it depends on them.
void registerNVVMDependencies(mlir::DialectRegistry &registry);

/// Loads them, where no pass has said so.
void loadNVVMDependencies(mlir::MLIRContext *context);

/// Turns every gpu.func in `module` into an llvm.func with NVVM intrinsics, ready for translation to LLVM IR. Math is
/// expanded to the arithmetic that CPUs run (../ExpandMath.h), so no libdevice is asked for.
mlir::LogicalResult convertToNVVM(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_CONVERTTONVVM_H
