//===- ConvertToLLVM.h - loops of kernels to the LLVM dialect ---*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_CONVERTTOLLVM_H
#define SPMD_LIB_KERNELS_HOST_CONVERTTOLLVM_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Converts scf, arith, math and vector ops inside of llvm.func to the LLVM dialect, for CPUs. Math ops that have no
/// instruction become arithmetic first.
mlir::LogicalResult convertToLLVM(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_CONVERTTOLLVM_H
