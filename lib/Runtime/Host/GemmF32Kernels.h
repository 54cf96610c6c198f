//===- GemmF32Kernels.h - The innermost loops of products of f32 -*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
#define SPMD_RUNTIME_HOST_GEMMF32KERNELS_H

#include <cstdint>

namespace spmd::runtime {

/// One tile of C and the part of the depth that is next: to = (from + sum) + bias + residual, each but the sum optional.
struct TileF32 {
  int64_t depth = 0;
  const float *a = nullptr; ///< packed: all rows of the tile, depth after depth
  const float *b = nullptr; ///< packed: whole vectors of columns, depth after depth
  const float *from = nullptr;
  int64_t ldFrom = 0;
  float *to = nullptr;
  int64_t ldTo = 0;
  const float *bias = nullptr, *residual = nullptr;
  int64_t ldr = 0;
  int64_t columns = 0;
};

/// The loops for one kind of processor.
struct KernelsF32 {
  int64_t tileRows, tileColumns; ///< of the largest tile
  int64_t lanes;                 ///< columns in a vector
  using Tile = void (*)(const TileF32 &);
  /// By rows - 1 and vectors - 1.
  const Tile (*tiles)[2];
  /// Packs `count` rows of A or columns of B, a strip: element i of depth l, `from[i * strip + l * along]`, to
  /// `to[l * width + i]`. One of `strip` and `along` is 1. What lies between count and width has no meaning; up to a
  /// vector behind the strip may be overwritten.
  void (*pack)(const float *from, int64_t strip, int64_t along, int64_t count, int64_t depth, int64_t width, float *to);
};

#if defined(__x86_64__)
extern const KernelsF32 kKernelsAVX512, kKernelsAVX2;
#endif

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
