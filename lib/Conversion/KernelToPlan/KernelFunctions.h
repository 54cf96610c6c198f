//===- KernelFunctions.h - The kernels that a plan launches -----*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_KERNELFUNCTIONS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_KERNELFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace spmd {

/// Adds, before `step`, a private function for each kernel symbol in it, holding the first op of that symbol: what
/// `plan.kernel @SYMBOL` runs, and what code is generated from when `step` is gone.
void addKernelFunctions(mlir::func::FuncOp step);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_KERNELFUNCTIONS_H
