//===- GemmTile.h - Tiles of a GEMM, for vectors of any length --*- C++ -*-===//
//
// For the files that define, before they include it, SPMD_TARGET (the attribute of their processor) and `Lanes` (its
// vectors): its functions carry the attribute, so each file has its own.
//
//===----------------------------------------------------------------------===//

#include "GemmKernels.h"

#include <algorithm>

namespace {

using Element = Lanes::Element;
using Ahead = spmd::runtime::Ahead<Element>;
using Tile = spmd::runtime::Tile<Element>;

#define SPMD_INLINE SPMD_TARGET __attribute__((always_inline)) inline

/// So many k before they are copied they come nearer: further ones would drive each other out of the first-level
/// cache.
constexpr int64_t kNear = 8;
constexpr int64_t kLine = 64 / sizeof(Element); ///< elements in a line of a cache

/// Row i of A is at (i % 3) * lda of pointer i / 3, which are few enough for registers.
template <int Rows, int Vectors>
SPMD_INLINE void addProducts(const Element *const (&a)[(Rows + 2) / 3], int64_t lda, int64_t step, const Element *b,
                             Lanes::Vector (&sum)[Rows][Vectors]) {
  Lanes::Vector columns[Vectors];
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v)
    columns[v] = Lanes::load(b + v * Lanes::kLanes);
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    Lanes::Vector row = Lanes::broadcast(a[i / 3] + i % 3 * lda + step);
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = Lanes::multiplyAdd(row, columns[v], sum[i][v]);
  }
}

/// Copies one row of B, and brings a later one nearer. Returns where the next one goes.
template <int Vectors>
SPMD_INLINE Element *copyRow(const Element *from, int64_t step, Element *to) {
  constexpr int64_t L = Lanes::kLanes;
  asm volatile("" ::: "memory");
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v)
    Lanes::store(to + v * L, Lanes::load(from + v * L));
  __builtin_prefetch(from + kNear * step);
  __builtin_prefetch(from + kNear * step + Vectors * L - 1);
  return to + Vectors * L;
}

/// A tile of Rows rows and Vectors vectors, in registers. The rows of A lie side by side or, with Apart, consecutive k
/// do. A condition on Copies at run time would cost registers.
template <int Rows, int Vectors, bool Apart, bool Copies>
SPMD_TARGET void multiplyTile(const Tile &tile) {
  using Vector = Lanes::Vector;
  constexpr int64_t L = Lanes::kLanes;
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = Lanes::zero();
  const Element *b = tile.b;
  int64_t lda = Apart ? tile.ldA : 1, stepA = Apart ? 1 : tile.ldA, stepB = tile.ldB;
  const Element *a[(Rows + 2) / 3];
#pragma GCC unroll 5
  for (int i = 0; i < (Rows + 2) / 3; ++i)
    a[i] = tile.a + 3 * i * lda;
  const Element *to = tile.to;
  const Element *residual = tile.residual == tile.to ? nullptr : tile.residual;
  Element *packedB = tile.packedB;
  Ahead &ahead = *tile.ahead;
  int64_t l = 0, last = tile.columns - 1;
  // The rows of C (and of a residual) come nearer one by one: all at once they would be in the way of the operands.
  // Late, or the operands would drive them out of the first-level cache again; but memory takes a few rounds.
  constexpr int64_t rounds = Rows + 8;
  for (int64_t row = std::min<int64_t>(0, rounds - tile.k / 4); l + 4 <= tile.k; l += 4, b += 4 * stepB, ++row) {
    if (row >= 0 && row < Rows) {
      __builtin_prefetch(to, 1);
      __builtin_prefetch(to + last, 1);
      if (Vectors * L > kLine)
        __builtin_prefetch(to + last / 2, 1);
      to += tile.ldTo;
      if (residual) {
        __builtin_prefetch(residual);
        __builtin_prefetch(residual + last);
        residual += tile.ldr;
      }
    }
    if (ahead.rows > 0) {
      __builtin_prefetch(ahead.row + ahead.at, 0, 2);
      __builtin_prefetch(ahead.row + ahead.at + kLine, 0, 2);
      ahead.at += 2 * kLine;
      if (ahead.at >= ahead.length) {
        ahead.at = 0;
        ahead.row += ahead.step;
        --ahead.rows;
      }
    }
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      // All registers are sums: loads must not move ahead of the step that they belong to.
      asm volatile("" ::: "memory");
      addProducts<Rows, Vectors>(a, lda, step * stepA, b + step * stepB, sum);
      if constexpr (Copies)
        packedB = copyRow<Vectors>(b + step * stepB, stepB, packedB);
    }
#pragma GCC unroll 5
    for (const Element *&rows : a) {
      rows += 4 * stepA;
      asm("" : "+r"(rows)); // stays a pointer of its own
    }
  }
  for (; l < tile.k; ++l, b += stepB) {
    addProducts<Rows, Vectors>(a, lda, 0, b, sum);
    if constexpr (Copies)
      packedB = copyRow<Vectors>(b, stepB, packedB);
#pragma GCC unroll 5
    for (const Element *&rows : a)
      rows += stepA;
  }
  if (!tile.from && !tile.bias && !tile.residual && tile.columns == Vectors * L) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        Lanes::store(tile.to + i * tile.ldTo + v * L, sum[i][v]);
    return;
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

/// Columns that lie side by side.
SPMD_TARGET void copyStrip(const Element *from, int64_t along, int64_t count, int64_t k, Element *to) {
  constexpr int64_t L = Lanes::kLanes;
  int64_t width = (count + L - 1) / L * L;
  for (int64_t i = 0; i < count; i += L) {
    Lanes::Mask mask = Lanes::firsts(count - i);
    for (int64_t l = 0; l < k; ++l)
      Lanes::store(to + l * width + i, Lanes::load(from + l * along + i, mask));
  }
}

/// Columns whose consecutive k lie side by side: transposed by whole vectors of four k. Columns that do not exist are
/// the first.
SPMD_TARGET void transposeStrip(const Element *from, int64_t strip, int64_t count, int64_t k, Element *to) {
  constexpr int64_t L = Lanes::kLanes;
  int64_t width = (count + L - 1) / L * L;
  for (int64_t i = 0; i < count; i += L) {
    const Element *columns[L];
    for (int64_t c = 0; c < L; ++c)
      columns[c] = from + (i + c < count ? i + c : 0) * strip;
    int64_t l = 0;
    for (; l + 4 <= k; l += 4)
      Lanes::transposeFour(columns, l, to + l * width + i, width);
    for (; l < k; ++l)
      for (int64_t c = 0; c < L; ++c)
        to[l * width + i + c] = columns[c][l];
  }
}

SPMD_TARGET void packStrip(const Element *from, int64_t strip, int64_t along, int64_t count, int64_t k, Element *to) {
  if (strip == 1)
    copyStrip(from, along, count, k, to);
  else
    transposeStrip(from, strip, count, k, to);
}

/// Rows of a transposed A, Vectors vectors a strip.
template <int Vectors>
SPMD_TARGET void packStrips(const Element *from, int64_t along, int64_t count, int64_t width, int64_t k, Element *to,
                            int64_t step) {
  constexpr int64_t L = Lanes::kLanes, lanes = Vectors * L;
  int64_t whole = count < lanes ? 0 : ((count - lanes) / width + 1) * width; // of these, vectors lie within the rows
  for (int64_t l = 0; l < k; ++l, from += along, to += lanes) {
    const Element *next = from + kNear * along;
    for (int64_t i = 0; i < count; i += kLine)
      __builtin_prefetch(next + i);
    __builtin_prefetch(next + count - 1);
    Element *strip = to;
    int64_t i = 0;
    for (; i < whole; i += width, strip += step)
#pragma GCC unroll 2
      for (int64_t v = 0; v < lanes; v += L)
        Lanes::store(strip + v, Lanes::load(from + i + v));
    for (; i < count; i += width, strip += step)
#pragma GCC unroll 2
      for (int64_t v = 0; v < lanes; v += L)
        Lanes::store(strip + v, Lanes::load(from + i + v, Lanes::firsts(std::max<int64_t>(count - i - v, 0))));
  }
}

SPMD_TARGET void packGroup(const Element *from, int64_t along, int64_t count, int64_t width, int64_t k, Element *to,
                           int64_t step) {
  if (width <= Lanes::kLanes)
    packStrips<1>(from, along, count, width, k, to, step);
  else
    packStrips<2>(from, along, count, width, k, to, step);
}

template <int... Rows>
struct Tiles {
  static constexpr spmd::runtime::Kernels<Element>::MultiplyTile table[sizeof...(Rows)][2][2][2] = {
      {{{multiplyTile<Rows, 1, false, false>, multiplyTile<Rows, 1, false, true>},
        {multiplyTile<Rows, 1, true, false>, multiplyTile<Rows, 1, true, true>}},
       {{multiplyTile<Rows, 2, false, false>, multiplyTile<Rows, 2, false, true>},
        {multiplyTile<Rows, 2, true, false>, multiplyTile<Rows, 2, true, true>}}}...};
};

} // namespace
