//===- GemmF32Kernels.h - The innermost loops of products of f32 -*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
#define SPMD_RUNTIME_HOST_GEMMF32KERNELS_H

#include <cstdint>

namespace spmd::runtime {

/// Memory that is wanted soon: `rows` rows of `length` elements, `step` apart. Tiles bring it nearer a few lines at a
/// time, because waiting for it costs more than packing it.
struct Ahead {
  const float *row = nullptr;
  int64_t rows = 0, step = 0, length = 0;
  int64_t at = 0; ///< how far the first of them is done
};

/// One tile of C and the part of the depth that is next: to = (from + sum) + bias + residual, each but the sum
/// optional.
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
  /// Where tiles that copy put the columns of B, all of their vectors, depth after depth, while they read them.
  float *packedB = nullptr;
  Ahead *ahead = nullptr;
};

/// The loops for one kind of processor.
struct KernelsF32 {
  int64_t tileRows, tileColumns; ///< of the largest tile
  int64_t lanes;                 ///< columns in a vector
  using Tile = void (*)(const TileF32 &);
  /// By rows - 1, vectors - 1, whether the depths of A lie side by side, and whether B is copied.
  const Tile (*tiles)[2][2][2];
  /// Packs `count` columns of B in whole vectors, depth after depth. Column i of depth l is `from[i * strip + l *
  /// along]`; one of `strip` and `along` is 1. What lies behind the columns has no meaning.
  void (*pack)(const float *from, int64_t strip, int64_t along, int64_t count, int64_t depth, float *to);
  /// Packs `count` rows of a transposed A in strips of `width` rows, `step` apart: each as one vector, depth after
  /// depth. Row i of depth l is `from[i + l * along]`.
  void (*packRows)(const float *from, int64_t along, int64_t count, int64_t width, int64_t depth, float *to,
                   int64_t step);
};

#if defined(__x86_64__)
extern const KernelsF32 kKernelsAVX512, kKernelsAVX2;
#endif

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMF32KERNELS_H
