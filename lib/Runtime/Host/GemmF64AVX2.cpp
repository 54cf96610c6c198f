//===- GemmF64AVX2.cpp ----------------------------------------------------===//

#if defined(__x86_64__)

#include <cstdint>
#include <immintrin.h>

#define SPMD_TARGET __attribute__((target("avx2,fma")))

namespace {
#define SPMD_LANE static __attribute__((target("avx2,fma"), always_inline)) inline

struct Lanes {
  using Element = double;
  using Vector = __m256d;
  using Mask = __m256i;
  static constexpr int64_t kLanes = 4;

  SPMD_LANE Vector zero() { return _mm256_setzero_pd(); }
  SPMD_LANE Vector load(const double *from) { return _mm256_loadu_pd(from); }
  SPMD_LANE Vector load(const double *from, Mask mask) { return _mm256_maskload_pd(from, mask); }
  SPMD_LANE Vector broadcast(const double *from) { return _mm256_broadcast_sd(from); }
  SPMD_LANE Vector add(Vector x, Vector y) { return _mm256_add_pd(x, y); }
  SPMD_LANE Vector multiplyAdd(Vector x, Vector y, Vector z) { return _mm256_fmadd_pd(x, y, z); }
  SPMD_LANE void store(double *to, Vector value) { _mm256_storeu_pd(to, value); }
  SPMD_LANE void store(double *to, Mask mask, Vector value) { _mm256_maskstore_pd(to, mask, value); }
  SPMD_LANE Mask firsts(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }

  /// Elements l and l + 1 of rows r and r + 2.
  SPMD_LANE Vector gatherRows(const double *const *rows, int64_t l) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(rows[0] + l)), _mm_loadu_pd(rows[2] + l), 1);
  }
  SPMD_LANE void transposeFour(const double *const *rows, int64_t l, double *to, int64_t width) {
#pragma GCC unroll 2
    for (int64_t pair = 0; pair < 4; pair += 2, to += 2 * width) {
      __m256d r0 = gatherRows(rows, l + pair), r1 = gatherRows(rows + 1, l + pair);
      store(to, _mm256_unpacklo_pd(r0, r1));
      store(to + width, _mm256_unpackhi_pd(r0, r1));
    }
  }
};
} // namespace

#include "GemmTile.h"

template <>
const spmd::runtime::Kernels<double> spmd::runtime::Kernels<double>::kAVX2 = {
    6, 8, 4, 10, Tiles<1, 2, 3, 4, 5, 6>::table, packStrip, packGroup};

#endif
