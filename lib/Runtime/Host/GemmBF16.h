//===- GemmBF16.h - GEMMs of bf16 matrices ----------------------*- C++ -*-===//
//
// [Note: GEMMs of bf16] Every GEMM is summed in f32 and rounded once, to the nearest, ties to even. The order of
// additions is the unit's:
//
// - AMX (tdpbf16ps): k comes in blocks of 32. In a block one chain of fused multiply-adds from zero goes along
//   even k and one along odd k; the two are added, then their sum to what there is. Where C is added to, it
//   is there first. Subnormal numbers, operands and results, count as zero.
// - AVX512-BF16 (vdpbf16ps): pairs of neighbours along k, subnormal numbers likewise.
// - Widened: blocks are widened and are GEMMs of f32 ([Note: GEMMs of f32]).
//
// All go through one workspace per thread that is made before the first step. So bits depend on the processor, but not
// on the number of threads or how a GEMM is cut among them.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_HOST_GEMMBF16_H
#define SPMD_LIB_RUNTIME_HOST_GEMMBF16_H

#include "GemmProblem.h"

namespace spmd::runtime {

using GemmProblemBF16 = GemmProblem<uint16_t>;

enum class UnitBF16 {
  AMX,
  Native, ///< AVX512-BF16
  F32     ///< widened
};

/// Whether this processor has a unit, and the operating system lends it to this process.
bool hasUnitBF16(UnitBF16 unit);

/// The fastest unit that there is.
UnitBF16 getUnitBF16();

/// Runs a GEMM on the calling thread.
void runGemmBF16(const GemmProblemBF16 &gemm, UnitBF16 unit);

/// Gives the calling thread its workspace, so that its first GEMM does not allocate.
void prepareThreadBF16();

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_GEMMBF16_H
