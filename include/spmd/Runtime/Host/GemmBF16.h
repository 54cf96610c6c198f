//===- GemmBF16.h - Products of bf16 matrices --------------------*- C++ -*-===//
//
// [Note: products of bf16] Every product is summed in f32 and rounded once. With AVX512-BF16 (vdpbf16ps) operands are
// packed as pairs of neighbours along the depth; elsewhere blocks are widened and are products of f32 ([Note: products
// of f32]). Both go through one workspace per thread that is made before the first step. The sums are those of f32 up
// to the order of additions; vdpbf16ps takes subnormal numbers for zero. So bits differ between processors with and
// without it, but not with the way a product is cut among threads.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMBF16_H
#define SPMD_RUNTIME_HOST_GEMMBF16_H

#include "spmd/Runtime/Host/GemmProduct.h"

namespace spmd::runtime {

using ProductBF16 = Product<uint16_t>;

enum class UnitBF16 {
  Native, ///< AVX512-BF16
  F32     ///< widened
};

/// The faster unit that this processor has.
UnitBF16 getUnitBF16();

/// Runs a product on the calling thread.
void runProductBF16(const ProductBF16 &product, UnitBF16 unit);

/// Gives the calling thread its workspace, so that its first product does not allocate.
void prepareThreadBF16();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMBF16_H
