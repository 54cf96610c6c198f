//===- GemmF32.h - GEMMs of f32 matrices ------------------------*- C++ -*-===//
//
// [Note: GEMMs of f32] An element of a GEMM is defined to the bit. Its k is cut into blocks of
// kF32BlockK; the sum of a block is one chain of fused multiply-adds from zero in the order of k, and the sums of
// the blocks are added in order, each addition rounded. Then come, rounded one by one: bias, residual or the old C.
// Nothing else enters: no element knows where tiles, vectors or threads begin. So the bits are the same with AVX2, with
// AVX-512 and without either, however a GEMM is cut among threads, and an epilogue has those of the GEMM followed
// by the additions.
//
// Between two blocks of k the sums so far lie in C itself. Where C is still read at the end (accumulation, or a
// residual that shares its bytes), they lie in the workspace instead, block of C by block of C.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_HOST_GEMMF32_H
#define SPMD_LIB_RUNTIME_HOST_GEMMF32_H

#include "GemmProblem.h"
#include "VectorUnit.h"

namespace spmd::runtime {

using GemmProblemF32 = GemmWithEpilogue<float>;

/// The size of the blocks of k.
constexpr int64_t kF32BlockK = 512;

/// Runs a GEMM on the calling thread.
void runGemmF32(const GemmProblemF32 &gemm, VectorUnit unit);

/// Gives the calling thread what GEMMs need, so that its first one does not allocate.
void prepareThreadF32();

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_GEMMF32_H
