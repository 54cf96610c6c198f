//===- GemmProduct.h - A matrix product ---------------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMPRODUCT_H
#define SPMD_RUNTIME_HOST_GEMMPRODUCT_H

#include <cstdint>

namespace spmd::runtime {

/// One product of row-major matrices, C = op(A) op(B) (+ C): op(A) is m x k, op(B) is k x n.
template <typename Element>
struct Product {
  int64_t m = 0, n = 0, k = 0;
  const Element *a = nullptr, *b = nullptr;
  Element *c = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transA = false, transB = false, accumulate = false;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMPRODUCT_H
