//===- GemmF64.h - Products of f64 matrices ----------------------*- C++ -*-===//
//
// [Note: products of f64] They are defined as products of f32 are ([Note: products of f32]), with blocks of
// kF64BlockDepth, and computed by the same loops: the same bits with every unit, however a product is cut among
// threads.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_GEMMF64_H
#define SPMD_RUNTIME_HOST_GEMMF64_H

#include "spmd/Runtime/Host/GemmProduct.h"
#include "spmd/Runtime/Host/VectorUnit.h"

namespace spmd::runtime {

using ProductF64 = ProductWithEpilogue<double>;

/// How deep the blocks of k are.
constexpr int64_t kF64BlockDepth = 256;

/// Runs a product on the calling thread.
void runProductF64(const ProductF64 &product, VectorUnit unit);

/// Gives the calling thread what products need, so that its first one does not allocate.
void prepareThreadF64();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF64_H
