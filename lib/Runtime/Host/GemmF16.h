//===- GemmF16.h - GEMMs of f16 matrices ------------------------*- C++ -*-===//
//
// [Note: GEMMs of f16] Blocks are widened and are GEMMs of f32 ([Note: GEMMs of f32]): summed in f32, rounded
// once, to the nearest, ties to even; subnormal numbers are kept, and what is 65,520 or more is infinity. Where C is
// added to, it is there first. Bits are the same with every unit of f32, with any number of threads and however a
// GEMM is cut among them. All goes through one workspace per thread that is made before the first step.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_HOST_GEMMF16_H
#define SPMD_LIB_RUNTIME_HOST_GEMMF16_H

#include "GemmProblem.h"

namespace spmd::runtime {

using GemmProblemF16 = GemmProblem<uint16_t>;

/// Runs a GEMM on the calling thread.
void runGemmF16(const GemmProblemF16 &gemm);

/// Gives the calling thread its workspace, so that its first GEMM does not allocate.
void prepareThreadF16();

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_GEMMF16_H
