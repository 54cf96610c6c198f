//===- GemmF32AVX512.cpp --------------------------------------------------===//

#if defined(__x86_64__)

#include <cstdint>
#include <immintrin.h>

#define SPMD_TARGET __attribute__((target("avx512f")))

namespace {
#define SPMD_LANE static __attribute__((target("avx512f"), always_inline)) inline

struct Lanes {
  using Element = float;
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr int64_t kLanes = 16;

  SPMD_LANE Vector zero() { return _mm512_setzero_ps(); }
  SPMD_LANE Vector load(const float *from) { return _mm512_loadu_ps(from); }
  SPMD_LANE Vector load(const float *from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  SPMD_LANE Vector broadcast(const float *from) { return _mm512_set1_ps(*from); }
  SPMD_LANE Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  SPMD_LANE Vector multiplyAdd(Vector x, Vector y, Vector z) { return _mm512_fmadd_ps(x, y, z); }
  SPMD_LANE void store(float *to, Vector value) { _mm512_storeu_ps(to, value); }
  SPMD_LANE void store(float *to, Mask mask, Vector value) { _mm512_mask_storeu_ps(to, mask, value); }
  SPMD_LANE Mask firsts(int64_t count) { return static_cast<Mask>(count >= 16 ? 0xffff : (1u << count) - 1); }

  /// Elements l to l + 3 of rows r, r + 4, r + 8, r + 12.
  SPMD_LANE Vector gatherRows(const float *const *rows, int64_t l) {
    __m512 four = _mm512_castps128_ps512(_mm_loadu_ps(rows[0] + l));
    four = _mm512_insertf32x4(four, _mm_loadu_ps(rows[4] + l), 1);
    four = _mm512_insertf32x4(four, _mm_loadu_ps(rows[8] + l), 2);
    return _mm512_insertf32x4(four, _mm_loadu_ps(rows[12] + l), 3);
  }
  SPMD_LANE void transposeFour(const float *const *rows, int64_t l, float *to, int64_t width) {
    __m512 r0 = gatherRows(rows, l), r1 = gatherRows(rows + 1, l), r2 = gatherRows(rows + 2, l),
           r3 = gatherRows(rows + 3, l);
    __m512 low01 = _mm512_unpacklo_ps(r0, r1), high01 = _mm512_unpackhi_ps(r0, r1),
           low23 = _mm512_unpacklo_ps(r2, r3), high23 = _mm512_unpackhi_ps(r2, r3);
    store(to, _mm512_shuffle_ps(low01, low23, 0x44));
    store(to + width, _mm512_shuffle_ps(low01, low23, 0xee));
    store(to + 2 * width, _mm512_shuffle_ps(high01, high23, 0x44));
    store(to + 3 * width, _mm512_shuffle_ps(high01, high23, 0xee));
  }
};
} // namespace

#include "GemmTile.h"

template <>
const spmd::runtime::Kernels<float> spmd::runtime::Kernels<float>::kAVX512 = {
    14, 32, 16, 10, Tiles<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14>::table, packStrip, packGroup};

#endif
