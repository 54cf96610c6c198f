//===- GemmF64.h - GEMMs of f64 matrices ------------------------*- C++ -*-===//
//
// [Note: GEMMs of f64] They are defined as GEMMs of f32 are ([Note: GEMMs of f32]), with blocks of
// kF64BlockK, and computed by the same loops: the same bits with every unit, however a GEMM is cut among
// threads.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_HOST_GEMMF64_H
#define SPMD_LIB_RUNTIME_HOST_GEMMF64_H

#include "GemmProblem.h"
#include "VectorUnit.h"

namespace spmd::runtime {

using GemmProblemF64 = GemmWithEpilogue<double>;

/// The size of the blocks of k.
constexpr int64_t kF64BlockK = 256;

/// Runs a GEMM on the calling thread.
void runGemmF64(const GemmProblemF64 &gemm, VectorUnit unit);

/// Gives the calling thread what GEMMs need, so that its first one does not allocate.
void prepareThreadF64();

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_GEMMF64_H
