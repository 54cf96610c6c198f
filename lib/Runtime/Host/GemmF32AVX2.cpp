//===- GemmF32AVX2.cpp ----------------------------------------------------===//

#if defined(__x86_64__)

#include <cstdint>
#include <immintrin.h>

#define SPMD_TARGET __attribute__((target("avx2,fma")))

namespace {
#define SPMD_LANE static __attribute__((target("avx2,fma"), always_inline)) inline

struct Lanes {
  using Element = float;
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr int64_t kLanes = 8;

  SPMD_LANE Vector zero() { return _mm256_setzero_ps(); }
  SPMD_LANE Vector load(const float *from) { return _mm256_loadu_ps(from); }
  SPMD_LANE Vector load(const float *from, Mask mask) { return _mm256_maskload_ps(from, mask); }
  SPMD_LANE Vector broadcast(const float *from) { return _mm256_broadcast_ss(from); }
  SPMD_LANE Vector add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
  SPMD_LANE Vector multiplyAdd(Vector x, Vector y, Vector z) { return _mm256_fmadd_ps(x, y, z); }
  SPMD_LANE void store(float *to, Vector value) { _mm256_storeu_ps(to, value); }
  SPMD_LANE void store(float *to, Mask mask, Vector value) { _mm256_maskstore_ps(to, mask, value); }
  SPMD_LANE Mask firsts(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }

  /// Elements l to l + 3 of rows r and r + 4.
  SPMD_LANE Vector gatherRows(const float *const *rows, int64_t l) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows[0] + l)), _mm_loadu_ps(rows[4] + l), 1);
  }
  SPMD_LANE void transposeFour(const float *const *rows, int64_t l, float *to, int64_t width) {
    __m256 r0 = gatherRows(rows, l), r1 = gatherRows(rows + 1, l), r2 = gatherRows(rows + 2, l),
           r3 = gatherRows(rows + 3, l);
    __m256 low01 = _mm256_unpacklo_ps(r0, r1), high01 = _mm256_unpackhi_ps(r0, r1),
           low23 = _mm256_unpacklo_ps(r2, r3), high23 = _mm256_unpackhi_ps(r2, r3);
    store(to, _mm256_shuffle_ps(low01, low23, 0x44));
    store(to + width, _mm256_shuffle_ps(low01, low23, 0xee));
    store(to + 2 * width, _mm256_shuffle_ps(high01, high23, 0x44));
    store(to + 3 * width, _mm256_shuffle_ps(high01, high23, 0xee));
  }
};
} // namespace

#include "GemmTile.h"

template <>
const spmd::runtime::Kernels<float> spmd::runtime::Kernels<float>::kAVX2 = {
    6, 16, 8, 10, Tiles<1, 2, 3, 4, 5, 6>::table, packStrip, packGroup};

#endif
