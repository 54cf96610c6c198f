//===- GemmF32Kernels.h - The innermost loops of products of f32 -*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
#define SPMD_RUNTIME_HOST_GEMMF32KERNELS_H

#include <cstdint>

namespace spmd::runtime {

/// One tile of C and the part of the depth that is next: to = (from + sum) + bias + residual, each but the sum optional.
struct TileF32 {
  int64_t depth = 0;
  const float *a = nullptr, *b = nullptr;
  int64_t ldA = 0; ///< from depth to depth, rows side by side; or from row to row, depths side by side
  int64_t ldB = 0; ///< from depth to depth, columns side by side, in whole vectors
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
  /// By rows - 1, vectors - 1 and whether the depths of A lie side by side.
  const Tile (*tiles)[2][2];
  /// Packs `count` rows of A or columns of B, a strip: element i of depth l, `from[i * strip + l * along]`, to
  /// `to[l * width + i]`. One of `strip` and `along` is 1. What lies between count and width has no meaning; where depths lie
  /// side by side, up to a vector behind the strip is overwritten.
  void (*pack)(const float *from, int64_t strip, int64_t along, int64_t count, int64_t depth, int64_t width, float *to);
};

#if defined(__x86_64__)
extern const KernelsF32 kKernelsAVX512, kKernelsAVX2;
#endif

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
