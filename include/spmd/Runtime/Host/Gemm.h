//===- Gemm.h - GEMMs on a rank's threads -----------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMM_H
#define SPMD_RUNTIME_HOST_GEMM_H

#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Host/Epilogue.h"
#include "spmd/Runtime/Host/WorkerPool.h"

namespace spmd::runtime {

/// Runs a gemm command (f32, f64, bf16 or f16) with operands a, b, c. C is divided over the pool by rows or columns;
/// each piece is a GEMM of one thread. Only GEMMs of f32 have an epilogue.
void runGemm(const GemmCommand &gemm, const void *a, const void *b, void *c, const Epilogue &epilogue,
             WorkerPool &pool);

inline void runGemm(const GemmCommand &gemm, const void *a, const void *b, void *c, WorkerPool &pool) {
  runGemm(gemm, a, b, c, Epilogue(), pool);
}

/// The same with activation gelu_tanh_backward (f32, bf16 or f16), in f32 and rounded once. `preActivation` lies as C
/// does.
void runGemmGeluBackward(const GemmCommand &gemm, const void *a, const void *b, const void *preActivation, void *c,
                         WorkerPool &pool);

/// Sums the matrix of which the gemm gives the bias gradient, an operand over k or the result over its rows, in their
/// order: in f32 (of f64 in f64), rounded once.
void runBiasGradient(const GemmCommand &gemm, const void *a, const void *b, const void *c, void *sums);

/// Gives the calling thread what GEMMs of `dtype` need, so that its first one
/// does not allocate.
void prepareGemmThread(DType dtype);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMM_H
