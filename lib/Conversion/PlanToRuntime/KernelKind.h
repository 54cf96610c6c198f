//===- KernelKind.h - What a manifest says of a kernel ------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H

#include "dialects/Kernel/Kernel.h"
#include "spmd/Runtime/Core/Manifest.h"

namespace spmd::kernel {

/// The op, and of a cluster what it combines: "elementwise", "row reduction" (over dims that end with the innermost),
/// "column reduction" (over others), "row and column reduction".
llvm::StringRef getKernelKind(mlir::Operation *op);

/// The matrix products of a kernel that computes nothing else; nothing for other kernels.
std::optional<runtime::KernelProducts> getProducts(KernelOpInterface op);

} // namespace spmd::kernel

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H
