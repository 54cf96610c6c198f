//===- KernelKind.h - what a kernel is, for people ---------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H

#include "dialects/Kernel/Kernel.h"

namespace spmd::kernel {

/// The op, and of a cluster what it combines: "elementwise", "row reduction" (over dims that end with the innermost),
/// "column reduction" (over others), "row and column reduction".
llvm::StringRef getKernelKind(mlir::Operation *op);

} // namespace spmd::kernel

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_KERNELKIND_H
