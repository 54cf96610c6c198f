//===- ElementEmitter.h - scalar ops of a body at a width -------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_ELEMENTEMITTER_H
#define SPMD_LIB_KERNELS_ELEMENTEMITTER_H

#include "CodeBuilder.h"

namespace spmd::kernel {

/// Emits `op`, a scalar arith or math op of a body, on `operands`. If one of them is a vector, all are made vectors of
/// that width and so is the result. `index` becomes i64.
mlir::Value emitElementOp(CodeBuilder &b, mlir::Operation &op, mlir::ValueRange operands);

/// `first, first + 1, ...` (a vector when `width` is above 1).
mlir::Value emitIota(CodeBuilder &b, mlir::Value first, int64_t width);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_ELEMENTEMITTER_H
