//===- GemmF32.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Host/GemmF32.h"
#include "GemmF32Kernels.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <algorithm>
#include <cblas.h>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace spmd::runtime;

namespace {

// [Note: loops of a product] The operand with the smaller extent is packed a panel of kPanel rows (columns) and a block
// of the depth at a time, and stays in the caches while the other one streams past it in groups of about kStream. Tiles
// do a multiply-add for every few bits they load, so the panel may lie in the third-level cache.
constexpr int64_t kPanel = 1024, kStream = 128, kDepth = kF32BlockDepth;
// Blocks of C whose sums lie in the workspace, where the sums of a stream's group would be.
constexpr int64_t kSumRows = 384, kSumColumns = 512;
constexpr int64_t kFew = 10; ///< so many strips are too few uses for a copy of the other operand
constexpr int64_t kSlack = 512; ///< behind each: strips are stored by whole vectors
constexpr int64_t kWorkspace = (kPanel + kStream) * kDepth + 2 * kSlack + kSumRows * kSumColumns;
static_assert(kF32WorkspaceBytes == kWorkspace * 4);

/// The buffers of one thread.
struct Workspace {
  Workspace() : memory(static_cast<float *>(std::aligned_alloc(64, kF32WorkspaceBytes)), std::free) {
    std::memset(memory.get(), 0, kF32WorkspaceBytes); // takes the pages now
  }
  float *panel() const { return memory.get(); }
  float *stream() const { return panel() + kPanel * kDepth + kSlack; }
  float *sums() const { return stream() + kStream * kDepth + kSlack; }

  std::unique_ptr<float, void (*)(void *)> memory;
};

const Workspace &getWorkspace() {
  thread_local Workspace workspace;
  return workspace;
}

/// op(A) as rows, or op(B) as columns: element i of depth l is `data[i * strip + l * along]`. Strips are as wide as
/// tiles, evened out so that the last is not much narrower.
struct Side {
  const float *data;
  int64_t strip, along, extent;
  int64_t width; ///< of a strip
  bool direct;   ///< not packed

  int64_t count(int64_t begin) const { return std::min(width, extent - begin); }
};

/// Brings what is packed next nearer, a few lines per tile: packing itself is short, waiting for memory is not.
class Prefetcher {
public:
  void begin(const Side &side, int64_t first, int64_t end, int64_t depth, int64_t depths, int64_t tiles) {
    bool sideBySide = side.strip == 1;
    next = side.data + first * side.strip + depth * side.along;
    rows = sideBySide ? depths : end - first;
    step = sideBySide ? side.along : side.strip;
    length = sideBySide ? end - first : depths;
    at = 0;
    perTile = rows * (length + kLine - 1) / kLine / std::max<int64_t>(tiles, 1) + 1;
  }
  void advance() {
    for (int64_t i = 0; i < perTile && rows > 0; ++i) {
      __builtin_prefetch(next + at, 0, 2);
      at += kLine;
      if (at >= length) {
        at = 0;
        next += step;
        --rows;
      }
    }
  }

private:
  static constexpr int64_t kLine = 16;
  const float *next = nullptr;
  int64_t rows = 0, step = 0, length = 0, at = 0, perTile = 0;
};

/// Part of a product, all of its depth.
class Part {
public:
  Part(const ProductF32 &p, const KernelsF32 &kernels, int64_t row, int64_t rows, int64_t column, int64_t columns,
       float *sums)
      : p(p), kernels(kernels), workspace(getWorkspace()), row(row), column(column), sums(sums),
        a{p.a + row * (p.transA ? 1 : p.lda), p.transA ? 1 : p.lda, p.transA ? p.lda : 1, rows, 0, false},
        b{p.b + column * (p.transB ? p.ldb : 1), p.transB ? p.ldb : 1, p.transB ? 1 : p.ldb, columns,
          kernels.tileColumns, false} {
    int64_t strips = (rows + kernels.tileRows - 1) / kernels.tileRows;
    a.width = (rows + strips - 1) / strips;
    a.direct = !packsA(p.transA, p.lda, columns);
    b.direct = !p.transB && rows <= kFew * a.width;
  }

  void run() {
    // Pieces by columns (the runtime's) that go down C one after the other do not meet where they touch.
    bool isA = a.extent <= (a.direct && !p.transA && p.k >= 256 ? 2 * b.extent : b.extent); // the panel
    Side &panel = isA ? a : b, &stream = isA ? b : a;
    int64_t panels = kPanel / panel.width * panel.width, streams = kStream / stream.width * stream.width;
    for (int64_t i = 0; i < panel.extent; i += panels)
      for (int64_t depth = 0; depth == 0 || depth < p.k; depth += kDepth) {
        int64_t end = std::min(i + panels, panel.extent);
        pack(panel, i, end, depth, workspace.panel());
        for (int64_t j = 0; j < stream.extent; j += streams) {
          int64_t last = std::min(j + streams, stream.extent);
          pack(stream, j, last, depth, workspace.stream());
          if (last < stream.extent)
            ahead.begin(stream, last, std::min(last + streams, stream.extent), depth, depths(depth),
                        (last - j) * (end - i) / (panel.width * stream.width));
          else if (depth + kDepth < p.k)
            ahead.begin(stream, 0, std::min(streams, stream.extent), depth + kDepth, depths(depth + kDepth),
                        (last - j) * (end - i) / (panel.width * stream.width));
          for (int64_t s = j; s < last; s += stream.width)
            for (int64_t t = i; t < end; t += panel.width) {
              ahead.advance();
              const float *packedPanel = workspace.panel() + (t - i) * depths(depth);
              const float *packedStream = workspace.stream() + (s - j) * depths(depth);
              if (isA)
                multiply(t, s, packedPanel, packedStream, depth);
              else
                multiply(s, t, packedStream, packedPanel, depth);
            }
        }
      }
  }

private:
  int64_t depths(int64_t depth) const { return std::min(kDepth, p.k - depth); }

  void pack(const Side &side, int64_t begin, int64_t end, int64_t depth, float *to) const {
    int64_t all = depths(depth), stretch = side.strip == 1 ? 32 : std::max<int64_t>(all, 1);
    // Whole rows of the source, rather than one strip after the other.
    for (int64_t l = 0; l < all; l += stretch)
      for (int64_t i = begin; i < end; i += side.width)
        if (!isDirect(side, i))
          kernels.pack(side.data + i * side.strip + (depth + l) * side.along, side.strip, side.along, side.count(i),
                       std::min(stretch, all - l), packedWidth(side, i),
                       to + (i - begin) * all + l * packedWidth(side, i));
  }
  /// Whether the strip is read as it lies.
  bool isDirect(const Side &side, int64_t i) const {
    return side.direct && (&side == &a || side.count(i) == side.width);
  }
  /// Columns come in whole vectors.
  int64_t packedWidth(const Side &side, int64_t i) const {
    return &side == &a ? side.count(i) : (side.count(i) + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
  }

  /// The tile at (i, j) of the part.
  void multiply(int64_t i, int64_t j, const float *packedA, const float *packedB, int64_t depth) const {
    TileF32 tile;
    tile.depth = depths(depth);
    tile.columns = b.count(j);
    tile.a = a.direct ? a.data + i * a.strip + depth * a.along : packedA;
    tile.ldA = a.direct ? a.strip * a.along : a.count(i);
    bool directB = isDirect(b, j);
    tile.b = directB ? b.data + j + depth * b.along : packedB;
    tile.ldB = directB ? b.along : packedWidth(b, j);
    float *c = p.c + (row + i) * p.ldc + column + j;
    float *between = sums ? sums + i * kSumColumns + j : c;
    int64_t ldBetween = sums ? kSumColumns : p.ldc;
    if (depth > 0) {
      tile.from = between;
      tile.ldFrom = ldBetween;
    }
    tile.to = between;
    tile.ldTo = ldBetween;
    if (depth + kDepth >= p.k) {
      tile.to = c;
      tile.ldTo = p.ldc;
      if (p.epilogue.bias)
        tile.bias = p.epilogue.bias + column + j;
      if (p.epilogue.residual) {
        tile.residual = p.epilogue.residual + (row + i) * p.epilogue.ldr + column + j;
        tile.ldr = p.epilogue.ldr;
      }
    }
    kernels.tiles[a.count(i) - 1][(tile.columns - 1) / kernels.lanes][a.direct && !p.transA](tile);
  }

  const ProductF32 &p;
  const KernelsF32 &kernels;
  const Workspace &workspace;
  int64_t row, column;
  float *sums;
  Side a, b;
  Prefetcher ahead;
};

} // namespace

static void runByBlas(const ProductF32 &p) {
  bool adds = p.epilogue.residual == p.c;
  cblas_sgemm(CblasRowMajor, p.transA ? CblasTrans : CblasNoTrans, p.transB ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(p.m), static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0f, p.a,
              static_cast<blasint>(p.lda), p.b, static_cast<blasint>(p.ldb), adds ? 1.0f : 0.0f, p.c,
              static_cast<blasint>(p.ldc));
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      float &value = p.c[i * p.ldc + j];
      if (p.epilogue.bias)
        value += p.epilogue.bias[j];
      if (p.epilogue.residual && !adds)
        value += p.epilogue.residual[i * p.epilogue.ldr + j];
    }
}

bool spmd::runtime::packsA(bool transA, int64_t lda, int64_t columns) {
  // Rows at the same place of their pages share too few places of the first-level cache.
  return transA ? columns > kFew * 32 : lda % 1024 == 0 && columns > 64;
}

UnitF32 spmd::runtime::getUnitF32() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return UnitF32::AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return UnitF32::AVX2;
#endif
  return UnitF32::Blas;
}

void spmd::runtime::prepareThreadF32() {
  if (getUnitF32() == UnitF32::Blas)
    prepareBlasThread();
  else
    getWorkspace();
}

void spmd::runtime::runProductF32(const ProductF32 &product, UnitF32 unit) {
  ProductF32 p = product;
  if (p.m == 0 || p.n == 0)
    return;
  if (p.accumulate) {
    p.epilogue.residual = p.c;
    p.epilogue.ldr = p.ldc;
  }
#if defined(__x86_64__)
  if (unit != UnitF32::Blas) {
    const KernelsF32 &kernels = unit == UnitF32::AVX512 ? kKernelsAVX512 : kKernelsAVX2;
    if (p.k <= kDepth || p.epilogue.residual != p.c)
      return Part(p, kernels, 0, p.m, 0, p.n, nullptr).run();
    for (int64_t row = 0; row < p.m; row += kSumRows)
      for (int64_t column = 0; column < p.n; column += kSumColumns)
        Part(p, kernels, row, std::min(kSumRows, p.m - row), column, std::min(kSumColumns, p.n - column),
             getWorkspace().sums())
            .run();
    return;
  }
#endif
  runByBlas(p);
}
