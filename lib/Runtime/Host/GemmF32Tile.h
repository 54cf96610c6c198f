//===- GemmF32Tile.h - Tiles of a product, for vectors of any length -*- C++ -*-===//
//
// For the files that define, before they include it, SPMD_TARGET (the attribute of their processor) and `Lanes` (its
// vectors): its functions carry the attribute, so each file has its own.
//
//===----------------------------------------------------------------------===//

#include "GemmF32Kernels.h"

#include <algorithm>
#include <array>

namespace {

using spmd::runtime::TileF32;

#define SPMD_INLINE SPMD_TARGET __attribute__((always_inline)) inline

/// A tile of Rows rows and Vectors vectors, in registers.
template <int Rows, int Vectors>
SPMD_TARGET void multiplyTile(const TileF32 &tile) {
  using Vector = Lanes::Vector;
  constexpr int64_t L = Lanes::kLanes;
  for (int i = 0; i < Rows; ++i)
    __builtin_prefetch(tile.to + i * tile.ldTo, 1);
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = Lanes::zero();
  const float *a = tile.a, *b = tile.b;
#pragma GCC unroll 4
  for (int64_t l = 0; l < tile.depth; ++l, a += Rows, b += Vectors * L) {
    Vector columns[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      columns[v] = Lanes::load(b + v * L);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      Vector row = Lanes::broadcast(a + i);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        sum[i][v] = Lanes::multiplyAdd(row, columns[v], sum[i][v]);
    }
  }
  Lanes::Mask masks[Vectors];
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v)
    masks[v] = Lanes::firsts(tile.columns - v * L);
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      Vector value = sum[i][v];
      if (tile.from)
        value = Lanes::add(Lanes::load(tile.from + i * tile.ldFrom + v * L, masks[v]), value);
      if (tile.bias)
        value = Lanes::add(value, Lanes::load(tile.bias + v * L, masks[v]));
      if (tile.residual)
        value = Lanes::add(value, Lanes::load(tile.residual + i * tile.ldr + v * L, masks[v]));
      Lanes::store(tile.to + i * tile.ldTo + v * L, masks[v], value);
    }
}

/// Strips whose elements lie side by side.
SPMD_TARGET void copyStrip(const float *from, int64_t along, int64_t count, int64_t depth, int64_t width, float *to) {
  constexpr int64_t L = Lanes::kLanes;
  int64_t i = 0;
  for (; i + L <= count; i += L)
    for (int64_t l = 0; l < depth; ++l)
      Lanes::store(to + l * width + i, Lanes::load(from + l * along + i));
  if (i == count)
    return;
  Lanes::Mask mask = Lanes::firsts(count - i);
  for (int64_t l = 0; l < depth; ++l)
    Lanes::store(to + l * width + i, Lanes::load(from + l * along + i, mask));
}

/// Strips whose depth lies side by side: transposed by whole vectors of four depths. Rows that do not exist are those
/// of the first.
SPMD_TARGET void transposeStrip(const float *from, int64_t strip, int64_t count, int64_t depth, int64_t width,
                                float *to) {
  constexpr int64_t L = Lanes::kLanes;
  for (int64_t i = 0; i < count; i += L) {
    const float *rows[L];
    for (int64_t r = 0; r < L; ++r)
      rows[r] = from + (i + r < count ? i + r : 0) * strip;
    int64_t l = 0;
    for (; l + 4 <= depth; l += 4)
      Lanes::transposeFour(rows, l, to + l * width + i, width);
    for (; l < depth; ++l)
      for (int64_t r = 0; r < std::min(L, count - i); ++r)
        to[l * width + i + r] = rows[r][l];
  }
}

SPMD_TARGET void packStrip(const float *from, int64_t strip, int64_t along, int64_t count, int64_t depth, int64_t width,
                           float *to) {
  if (strip == 1)
    copyStrip(from, along, count, depth, width, to);
  else
    transposeStrip(from, strip, count, depth, width, to);
}

template <int... Rows>
struct Tiles {
  static constexpr spmd::runtime::KernelsF32::Tile table[sizeof...(Rows)][2] = {
      {multiplyTile<Rows, 1>, multiplyTile<Rows, 2>}...};
};

} // namespace
