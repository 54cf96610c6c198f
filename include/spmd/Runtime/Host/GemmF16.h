//===- GemmF16.h - Products of f16 matrices ----------------------*- C++ -*-===//
//
// [Note: products of f16] Blocks are widened and are products of f32 ([Note: products of f32]): summed in f32, rounded
// once, to the nearest, ties to even; subnormal numbers are kept, and what is 65,520 or more is infinity. Where C is
// added to, it is there first. Bits are the same with every unit of f32, with any number of threads and however a
// product is cut among them. All goes through one workspace per thread that is made before the first step.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMF16_H
#define SPMD_RUNTIME_HOST_GEMMF16_H

#include "spmd/Runtime/Host/GemmProduct.h"

namespace spmd::runtime {

using ProductF16 = Product<uint16_t>;

/// Runs a product on the calling thread.
void runProductF16(const ProductF16 &product);

/// Gives the calling thread its workspace, so that its first product does not allocate.
void prepareThreadF16();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF16_H
