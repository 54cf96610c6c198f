//===- GemmF32.h - Products of f32 matrices ----------------------*- C++ -*-===//
//
// [Note: products of f32] An element of a product is defined to the bit. Its depth k is cut into blocks of
// kF32BlockDepth; the sum of a block is one chain of fused multiply-adds from zero in the order of k, and the sums of
// the blocks are added in order, each addition rounded. Then come, rounded one by one: bias, residual or the old C.
// Nothing else enters: no element knows where tiles, vectors or threads begin. So the bits are the same with AVX2 and
// with AVX-512, however a product is cut among threads, and an epilogue has those of the product followed by the
// additions.
//
// Between two blocks of the depth the sums so far lie in C itself. Where C is still read at the end (accumulation, or a
// residual that shares its bytes), they lie in the workspace instead, block of C by block of C.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMF32_H
#define SPMD_RUNTIME_HOST_GEMMF32_H

#include "spmd/Runtime/Host/GemmProduct.h"

namespace spmd::runtime {

/// What is added to each element of a product of f32 before it is stored: (product + bias) + residual. The residual may
/// be C itself, element upon element, but not otherwise overlap it.
struct Epilogue {
  const float *bias = nullptr;     ///< n, one per column, or null
  const float *residual = nullptr; ///< m x n, rows `ldr` apart, or null
  int64_t ldr = 0;
  int64_t strideR = 0; ///< between the residuals of a batch; all products share the bias
};

/// A product of f32 and what is added to it. With `accumulate`, C is the residual.
struct ProductF32 : Product<float> {
  Epilogue epilogue = {};
  /// Which of how many pieces of one C this is, each some of its columns: every piece starts at other rows, so that
  /// threads stay out of each other's.
  int64_t columnPiece = 0, columnPieces = 1;
};

/// How deep the blocks of k are.
constexpr int64_t kF32BlockDepth = 512;

enum class UnitF32 {
  AVX512,
  AVX2, ///< with FMA
  Blas  ///< OpenBLAS, whose bits are its own
};

/// The fastest unit that this processor has.
UnitF32 getUnitF32();

/// Runs a product on the calling thread.
void runProductF32(const ProductF32 &product, UnitF32 unit);

/// Gives the calling thread what products need, so that its first one does not allocate.
void prepareThreadF32();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF32_H
