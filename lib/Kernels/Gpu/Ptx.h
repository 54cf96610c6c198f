//===- Ptx.h - GPU kernels as PTX --------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_PTX_H
#define SPMD_LIB_KERNELS_GPU_PTX_H

#include "Device.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace spmd::kernel {

/// One kernel as a PTX module of its own.
struct KernelPtx {
  std::string symbol;
  std::string text;
};

/// Compiles every gpu.func of `module` (a module that holds one gpu.module, in the form that Gpu/GpuBuilder.h
/// describes) for `device`, in program order; `module` is used up. Floating-point arithmetic is IEEE's, every operation
/// rounded by itself. Kernels are compiled on all cores; the text does not depend on how many there are.
mlir::FailureOr<std::vector<KernelPtx>> emitPtx(mlir::ModuleOp module, const Device &device);

/// All kernels as one PTX module.
std::string joinPtx(llvm::ArrayRef<KernelPtx> kernels);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_PTX_H
