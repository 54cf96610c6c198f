//===- GemmKernels.h - The innermost loops of GEMMs -------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMKERNELS_H
#define SPMD_RUNTIME_HOST_GEMMKERNELS_H

#include <cstdint>

namespace spmd::runtime {

/// Memory that is wanted soon: `rows` rows of `length` elements, `step` apart. Tiles bring it nearer a few lines at a
/// time, because waiting for it costs more than packing it.
template <typename Element>
struct Ahead {
  const Element *row = nullptr;
  int64_t rows = 0, step = 0, length = 0;
  int64_t at = 0; ///< how far the first of them is done
};

/// One tile of C and the part of k that is next: to = (from + sum) + bias + residual, each but the sum
/// optional.
template <typename Element>
struct Tile {
  int64_t k = 0;
  const Element *a = nullptr, *b = nullptr;
  int64_t ldA = 0; ///< from k to k, rows side by side; or from row to row, consecutive k side by side
  int64_t ldB = 0; ///< from k to k, columns side by side, in whole vectors
  const Element *from = nullptr;
  int64_t ldFrom = 0;
  Element *to = nullptr;
  int64_t ldTo = 0;
  const Element *bias = nullptr, *residual = nullptr;
  int64_t ldr = 0;
  int64_t columns = 0;
  /// Where tiles that copy put the columns of B, all of their vectors, k after k, while they read them.
  Element *packedB = nullptr;
  Ahead<Element> *ahead = nullptr;
};

/// The loops for one kind of processor.
template <typename Element>
struct Kernels {
  int64_t tileRows, tileColumns; ///< of the largest tile
  int64_t lanes;                 ///< columns in a vector
  int64_t fewTiles;              ///< so many are too few uses for a copy of a strip of B, as measured
  using MultiplyTile = void (*)(const Tile<Element> &);
  /// By rows - 1, vectors - 1, whether consecutive k of A lie side by side, and whether B is copied.
  const MultiplyTile (*tiles)[2][2][2];
  /// Packs `count` columns of B in whole vectors, k after k. Column i of k = l is `from[i * strip + l *
  /// along]`; one of `strip` and `along` is 1. What lies behind the columns has no meaning.
  void (*pack)(const Element *from, int64_t strip, int64_t along, int64_t count, int64_t k, Element *to);
  /// Packs `count` rows of a transposed A in strips of `width` rows, `step` apart: each as whole vectors, two at most,
  /// k after k. Row i of k = l is `from[i + l * along]`.
  void (*packRows)(const Element *from, int64_t along, int64_t count, int64_t width, int64_t k, Element *to,
                   int64_t step);

  static const Kernels kAVX512, kAVX2;
};

#if defined(__x86_64__)
template <>
const Kernels<float> Kernels<float>::kAVX512;
template <>
const Kernels<float> Kernels<float>::kAVX2;
template <>
const Kernels<double> Kernels<double>::kAVX512;
template <>
const Kernels<double> Kernels<double>::kAVX2;
#endif

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMKERNELS_H
