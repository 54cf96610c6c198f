//===- NarrowFloats.h - arithmetic on f16 and bf16 --------------*- C++ -*-===//
//
// [Note: narrow floats]
// f16 and bf16 are storage: an op on them is the op in f32, rounded once to the nearest, ties to even, as PyTorch
// computes. The rounding belongs to the op, so it stays between two ops of one kernel, and fusion changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_NARROWFLOATS_H
#define SPMD_LIB_KERNELS_NARROWFLOATS_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd::kernel {

/// Replaces every arith and math op on f16 or bf16 by extensions, the op in f32, and truncations. What is left on them
/// are conversions from and to f32, and ops that move values. For all targets, before expandMath.
void widenNarrowFloats(mlir::ModuleOp module);

/// Replaces conversions between f32 and narrow floats by integer arithmetic, and narrow floats by i16 everywhere: no
/// CPU needs instructions or a library for them, and all give the same bits, subnormal numbers included. A NaN stays
/// one, of the same sign. After widenNarrowFloats, and before any canonicalization, which would merge two roundings to
/// one.
void expandNarrowFloats(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_NARROWFLOATS_H
