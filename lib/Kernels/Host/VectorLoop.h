//===- VectorLoop.h - innermost loops and their reductions ------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_VECTORLOOP_H
#define SPMD_LIB_KERNELS_HOST_VECTORLOOP_H

#include "KernelBuilder.h"

namespace spmd::kernel {

/// Accumulators of a reduction.
inline constexpr int64_t kAccumulators = 4;

/// A value that is carried through a loop and combined in every iteration.
struct Reduction {
  ReduceKind kind;
  mlir::Type type;
};

/// Emits one iteration (or `width` side by side) at `i`; takes the accumulators, returns them combined.
using EmitPoint =
    llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value i, int64_t width, mlir::ValueRange accumulators)>;

/// Runs `emitPoint` over [low, high), high not below low: by vectors if `vectorize` or something is reduced, then by
/// scalars. Without reductions, `together` vectors are one wider vector first. Returns the reductions' totals.
///
/// [Note: shape of reductions]
/// There are four accumulators of 16 lanes: lane l of accumulator u takes elements 64 i + 16 u + l in order of i; what
/// is left takes accumulator 0, 16 elements at a time, then a scalar. Accumulators are combined as (0, 1), (2, 3),
/// lanes by halves, the scalar last. That shape is the meaning of the program: no pass may change it, and no fast-math
/// flag allows LLVM to.
mlir::SmallVector<mlir::Value> emitVectorLoop(KernelBuilder &b, mlir::Value low, mlir::Value high,
                                              mlir::ArrayRef<Reduction> reductions, bool vectorize,
                                              EmitPoint emitPoint, int64_t together = 1);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_VECTORLOOP_H
