//===- Gemm.h - Matrix products on a rank's threads ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMM_H
#define SPMD_RUNTIME_HOST_GEMM_H

#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Host/WorkerPool.h"

namespace spmd::runtime {

/// Runs a gemm command (f32 or f64) with operands a, b, c. C is divided over
/// the pool by rows or columns, in a way that depends only on the shape and the
/// number of threads; each piece is one call of serial BLAS.
void runGemm(const Command &command, const void *a, const void *b, void *c, WorkerPool &pool);

/// Gives the calling thread what BLAS needs, so that its first product does not
/// allocate.
void prepareBlasThread();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMM_H
