//===- MatmulKernel.cpp - blocked double matrix product -------------------===//

#include "MatmulKernel.h"
#include <algorithm>

namespace spmd::interp {

// No contraction: whether a column falls into a tile or into the rest must not
// decide whether its products are fused.
#pragma clang fp contract(off)

/// Columns of c that a block of rows keeps in registers.
constexpr int64_t kWidth = 16;

/// `rows` x kWidth of c in registers over the whole of k.
template <int rows>
__attribute__((always_inline)) static inline void tile(const double *a, const double *b, double *c, int64_t n,
                                                       int64_t k) {
  double sum[rows][kWidth];
  for (int i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kWidth; ++j)
      sum[i][j] = c[i * n + j];
  for (int64_t p = 0; p < k; ++p)
    for (int i = 0; i < rows; ++i)
      for (int64_t j = 0; j < kWidth; ++j)
        sum[i][j] += a[i * k + p] * b[p * n + j];
  for (int i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kWidth; ++j)
      c[i * n + j] = sum[i][j];
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void
multiplyAdd(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  int64_t wide = n - n % kWidth;
  for (int64_t i = 0; i < m;) {
    int64_t rows = m - i >= 4 ? 4 : 1;
    for (int64_t j = 0; j < wide; j += kWidth) {
      if (rows == 4)
        tile<4>(a + i * k, b + j, c + i * n + j, n, k);
      else
        tile<1>(a + i * k, b + j, c + i * n + j, n, k);
    }
    for (int64_t r = i; r < i + rows; ++r)
      for (int64_t j = wide; j < n; ++j) {
        double sum = c[r * n + j];
        for (int64_t p = 0; p < k; ++p)
          sum += a[r * k + p] * b[p * n + j];
        c[r * n + j] = sum;
      }
    i += rows;
  }
}

} // namespace spmd::interp
