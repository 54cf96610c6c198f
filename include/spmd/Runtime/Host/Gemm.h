//===- Gemm.h - Matrix products on a rank's threads ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMM_H
#define SPMD_RUNTIME_HOST_GEMM_H

#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Host/WorkerPool.h"

namespace spmd::runtime {

/// Runs a gemm command (f32, f64 or bf16) with operands a, b, c. C is divided over
/// the pool by rows or columns, in a way that depends only on the shape and the
/// number of threads; each piece is one call of serial BLAS, of bf16 a product
/// of GemmBF16.h.
void runGemm(const Command &command, const void *a, const void *b, void *c, WorkerPool &pool);

/// Gives the calling thread what products of `dtype` need, so that its first one
/// does not allocate.
void prepareGemmThread(DType dtype);

/// The part of BLAS in it.
void prepareBlasThread();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMM_H
