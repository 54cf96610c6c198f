//===- GemmParts.h - one GEMM as several that are fast ----------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_GEMMPARTS_H
#define SPMD_LIB_RUNTIME_CUDA_GEMMPARTS_H

#include "CudaMemory.h"
#include "spmd/Runtime/Core/Command.h"

#include <vector>

namespace spmd::runtime::cuda {

/// A GEMM, and what its references are on a rank.
struct GemmPart {
  Command command;
  std::vector<Address> addresses;
};

/// Floating-point operations from which splitting pays: at a tenth of a GPU's speed they take what some launches do.
constexpr double kLeastSplitFlops = 8e9;

// [Note: parts of GEMMs] cuBLASLt's fast algorithms for types of 2 bytes want the sizes of the dims along which
// matrices are contiguous to be multiples of 16 bytes, not leading dimensions alone ("Tensor Core Usage" in its
// documentation). A GEMM of 50,257 columns is one of 50,256 and one of the last: 0.9 ms and some 20 us in place of 6.6
// (H200, 8192 x 50257 x 768). Along k the last products are summed first, rounded to the type, and added to the others'
// sum, which is in f32 and rounded once: as exact as a residual.

/// The GEMM's parts, to be issued one after the other: itself where it is fast, or below `leastFlops`.
std::vector<GemmPart> splitGemm(GemmPart gemm, double leastFlops = kLeastSplitFlops);

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_GEMMPARTS_H
