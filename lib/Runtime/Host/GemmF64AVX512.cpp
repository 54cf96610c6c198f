//===- GemmF64AVX512.cpp --------------------------------------------------===//

#if defined(__x86_64__)

#include <cstdint>
#include <immintrin.h>

#define SPMD_TARGET __attribute__((target("avx512f")))

namespace {
#define SPMD_LANE static __attribute__((target("avx512f"), always_inline)) inline

struct Lanes {
  using Element = double;
  using Vector = __m512d;
  using Mask = __mmask8;
  static constexpr int64_t kLanes = 8;

  SPMD_LANE Vector zero() { return _mm512_setzero_pd(); }
  SPMD_LANE Vector load(const double *from) { return _mm512_loadu_pd(from); }
  SPMD_LANE Vector load(const double *from, Mask mask) { return _mm512_maskz_loadu_pd(mask, from); }
  SPMD_LANE Vector broadcast(const double *from) { return _mm512_set1_pd(*from); }
  SPMD_LANE Vector add(Vector x, Vector y) { return _mm512_add_pd(x, y); }
  SPMD_LANE Vector multiplyAdd(Vector x, Vector y, Vector z) { return _mm512_fmadd_pd(x, y, z); }
  SPMD_LANE void store(double *to, Vector value) { _mm512_storeu_pd(to, value); }
  SPMD_LANE void store(double *to, Mask mask, Vector value) { _mm512_mask_storeu_pd(to, mask, value); }
  SPMD_LANE Mask firsts(int64_t count) { return static_cast<Mask>(count >= 8 ? 0xff : (1u << count) - 1); }

  /// Elements l and l + 1 of rows r, r + 2, r + 4, r + 6.
  SPMD_LANE Vector gatherRows(const double *const *rows, int64_t l) {
    __m512 four = _mm512_castps128_ps512(_mm_castpd_ps(_mm_loadu_pd(rows[0] + l)));
    four = _mm512_insertf32x4(four, _mm_castpd_ps(_mm_loadu_pd(rows[2] + l)), 1);
    four = _mm512_insertf32x4(four, _mm_castpd_ps(_mm_loadu_pd(rows[4] + l)), 2);
    return _mm512_castps_pd(_mm512_insertf32x4(four, _mm_castpd_ps(_mm_loadu_pd(rows[6] + l)), 3));
  }
  SPMD_LANE void transposeFour(const double *const *rows, int64_t l, double *to, int64_t width) {
#pragma GCC unroll 2
    for (int64_t pair = 0; pair < 4; pair += 2, to += 2 * width) {
      __m512d r0 = gatherRows(rows, l + pair), r1 = gatherRows(rows + 1, l + pair);
      store(to, _mm512_unpacklo_pd(r0, r1));
      store(to + width, _mm512_unpackhi_pd(r0, r1));
    }
  }
};
} // namespace

#include "GemmTile.h"

template <>
const spmd::runtime::Kernels<double> spmd::runtime::Kernels<double>::kAVX512 = {
    14, 16, 8, 1, Tiles<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14>::table, packStrip, packGroup};

#endif
