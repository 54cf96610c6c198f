//===- GemmProblem.h - One GEMM ---------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_HOST_GEMMPROBLEM_H
#define SPMD_LIB_RUNTIME_HOST_GEMMPROBLEM_H

#include "spmd/Runtime/Host/Epilogue.h"

#include <cstdint>

namespace spmd::runtime {

/// One GEMM of row-major matrices, C = op(A) op(B) (+ C): op(A) is m x k, op(B) is k x n.
template <typename Element>
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  const Element *a = nullptr, *b = nullptr;
  Element *c = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transA = false, transB = false, accumulate = false;
};

/// A GEMM and what is added to it. With `accumulate`, C is the residual.
template <typename Element>
struct GemmWithEpilogue : GemmProblem<Element> {
  EpilogueOf<Element> epilogue = {};
  /// Which of how many pieces of one C this is, each some of its columns: every piece starts at other rows, so that
  /// threads stay out of each other's.
  int64_t columnPiece = 0, columnPieces = 1;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_HOST_GEMMPROBLEM_H
