//===- GemmBF16Squares.cpp ------------------------------------------------===//

#include "GemmBF16Squares.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SPMD_VECTORS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

using namespace spmd::runtime;

/// 16 bytes of each of four rows, side by side.
SPMD_VECTORS static inline __m512i loadFour(const uint16_t *from, int64_t ld) {
  auto load = [](const uint16_t *at) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at)); };
  __m512i lanes = _mm512_castsi128_si512(load(from));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x00f0, load(from + ld));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x0f00, load(from + 2 * ld));
  return _mm512_mask_broadcast_i32x4(lanes, 0xf000, load(from + 3 * ld));
}

SPMD_VECTORS static inline __mmask32 firsts(int64_t count) {
  return count >= 32 ? ~__mmask32(0) : (__mmask32(1) << count) - 1;
}

SPMD_VECTORS void spmd::runtime::copyPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part) {
  from += 8 * part * ld;
  to += 8 * part * kSquareSide;
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i)
    _mm512_store_si512(to + i * kSquareSide, _mm512_loadu_si512(from + i * ld));
}

// Eight columns; a lane of 128 bits has eight rows, so that nothing has to cross lanes.
SPMD_VECTORS void spmd::runtime::transposePart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part) {
  from += 8 * part;
  to += 8 * part * kSquareSide;
  __m512i rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i)
    rows[i] = loadFour(from + i * ld, 8 * ld);
#pragma GCC unroll 4
  for (int64_t i = 0; i < 8; i += 2) {
    pairs[i] = _mm512_unpacklo_epi16(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi16(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
      fours[i + 2 * half] = _mm512_unpacklo_epi32(pairs[i + half], pairs[i + 2 + half]);
      fours[i + 2 * half + 1] = _mm512_unpackhi_epi32(pairs[i + half], pairs[i + 2 + half]);
    }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    _mm512_store_si512(to + 2 * i * kSquareSide, _mm512_unpacklo_epi64(fours[i], fours[i + 4]));
    _mm512_store_si512(to + (2 * i + 1) * kSquareSide, _mm512_unpackhi_epi64(fours[i], fours[i + 4]));
  }
}

SPMD_VECTORS void spmd::runtime::pairRowsPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part) {
  const __m512i left = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i right = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  from += 8 * part * ld;
  to += 4 * part * kSquareSide;
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i, from += 2 * ld, to += kSquareSide) {
    __m512i even = _mm512_loadu_si512(from), odd = _mm512_loadu_si512(from + ld);
    __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
    _mm512_store_si512(to, _mm512_permutex2var_epi64(low, left, high));
    _mm512_store_si512(to + kSquareElements / 2, _mm512_permutex2var_epi64(low, right, high));
  }
}

// Eight pairs of 16 columns; a lane has four columns.
SPMD_VECTORS void spmd::runtime::pairColumnsPart(const uint16_t *from, int64_t ld, uint16_t *to, int64_t part) {
  from += part / 2 * 16 * ld + part % 2 * 16;
  to += part * 8 * kSquareSide;
#pragma GCC unroll 2
  for (int64_t pair = 0; pair < 8; pair += 4, to += 4 * kSquareSide) {
    __m512i columns[4], twos[4];
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i)
      columns[i] = loadFour(from + i * ld + 2 * pair, 4 * ld);
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) {
      twos[2 * i] = _mm512_unpacklo_epi32(columns[2 * i], columns[2 * i + 1]);
      twos[2 * i + 1] = _mm512_unpackhi_epi32(columns[2 * i], columns[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) {
      _mm512_store_si512(to + 2 * i * kSquareSide, _mm512_unpacklo_epi64(twos[i], twos[i + 2]));
      _mm512_store_si512(to + (2 * i + 1) * kSquareSide, _mm512_unpackhi_epi64(twos[i], twos[i + 2]));
    }
  }
}

SPMD_VECTORS void spmd::runtime::loadPart(const uint16_t *from, int64_t ld, int64_t rows, int64_t columns,
                                          uint16_t *to) {
  __mmask32 mask = firsts(columns);
  int64_t i = 0;
  for (; i < rows; ++i)
    _mm512_store_si512(to + i * kSquareSide, _mm512_maskz_loadu_epi16(mask, from + i * ld));
  for (; i < kSquareSide; ++i)
    _mm512_store_si512(to + i * kSquareSide, _mm512_setzero_si512());
}

SPMD_VECTORS void spmd::runtime::storePart(const uint16_t *from, uint16_t *to, int64_t ld, int64_t rows,
                                           int64_t columns) {
  __mmask32 mask = firsts(columns);
  for (int64_t i = 0; i < rows; ++i)
    _mm512_mask_storeu_epi16(to + i * ld, mask, _mm512_load_si512(from + i * kSquareSide));
}

SPMD_VECTORS void spmd::runtime::widenToTiles(const uint16_t *from, float *tiles) {
  for (int64_t i = 0; i < kSquareSide; ++i) {
    float *to = tiles + i / 16 * 512 + i % 16 * 16;
    for (int64_t half = 0; half < 2; ++half) {
      __m512i words = _mm512_cvtepu16_epi32(
          _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i * kSquareSide + 16 * half)));
      _mm512_store_si512(to + 256 * half, _mm512_slli_epi32(words, 16));
    }
  }
}

SPMD_VECTORS void spmd::runtime::roundPart(const float *tiles, uint16_t *to, int64_t ld, int64_t part) {
  tiles += part / 2 * 512 + part % 2 * 128;
  to += 8 * part * ld;
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i) {
    __m512bh row = _mm512_cvtne2ps_pbh(_mm512_load_ps(tiles + 16 * i + 256), _mm512_load_ps(tiles + 16 * i));
    _mm512_storeu_si512(to + i * ld, reinterpret_cast<__m512i>(row));
  }
}

#endif
