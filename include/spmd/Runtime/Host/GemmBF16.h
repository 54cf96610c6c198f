//===- GemmBF16.h - Products of bf16 matrices --------------------*- C++ -*-===//
//
// [Note: products of bf16] Every product is summed in f32 and rounded once, to the nearest, ties to even. The order of
// additions is the unit's:
//
// - AMX (tdpbf16ps): depths come in blocks of 32. In a block one chain of fused multiply-adds from zero goes along the
//   even depths and one along the odd ones; the two are added, then their sum to what there is. Where C is added to, it
//   is there first. Subnormal numbers, operands and results, count as zero.
// - AVX512-BF16 (vdpbf16ps): pairs of neighbours along the depth, subnormal numbers likewise.
// - Widened: blocks are widened and are products of f32 ([Note: products of f32]).
//
// All go through one workspace per thread that is made before the first step. So bits depend on the processor, but not
// on the number of threads or how a product is cut among them.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMBF16_H
#define SPMD_RUNTIME_HOST_GEMMBF16_H

#include "spmd/Runtime/Host/GemmProduct.h"

namespace spmd::runtime {

using ProductBF16 = Product<uint16_t>;

enum class UnitBF16 {
  AMX,
  Native, ///< AVX512-BF16
  F32     ///< widened
};

/// Whether this processor has a unit, and the operating system lends it to this process.
bool hasUnitBF16(UnitBF16 unit);

/// The fastest unit that there is.
UnitBF16 getUnitBF16();

/// Runs a product on the calling thread.
void runProductBF16(const ProductBF16 &product, UnitBF16 unit);

/// Gives the calling thread its workspace, so that its first product does not allocate.
void prepareThreadBF16();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMBF16_H
