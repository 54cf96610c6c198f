//===- ExpandMath.h - math ops without a library ----------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EXPANDMATH_H
#define SPMD_LIB_KERNELS_EXPANDMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Replaces every math op that has no instruction by arithmetic (scalar or vector, f32 and f64), so that kernels need
/// no libm and give the same bits on every CPU. An op without an expansion is an error.
mlir::LogicalResult expandMath(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EXPANDMATH_H
