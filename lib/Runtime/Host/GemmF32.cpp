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
#include <unistd.h>

using namespace spmd::runtime;

namespace {

// [Note: loops of a product] A block of C is a panel of columns and one block of the depth. The panel's part of B is
// packed strip by strip, in the tiles of the first group of rows, and stays in the second-level cache; rows of A come
// past it in groups, a tile high each, every group with all strips of the panel. A strip of B that lies as tiles want
// it is copied by the first tile that reads it, while it multiplies, unless few tiles or none read it after it; a
// transposed one is packed by itself. Rows of A are read where they lie, or copied where they would share too few
// places of the first-level cache. A transposed A is packed a group at a time: a depth of it may be a page of its own,
// and each tile would have to find all of them. Meanwhile tiles bring nearer what comes next: the next strip of B in
// the first group, the next group of A in all of them.
constexpr int64_t kPanel = 384, kWidePanel = 512, kGroup = 84, kDepth = kF32BlockDepth;
constexpr int64_t kSums = 512 * kPanel;     ///< of a block of C whose sums lie in the workspace
constexpr int64_t kGroupLanes = 2 * kGroup; ///< a strip of A is packed as one vector per depth, wider than itself
/// Of copied rows of A: one behind the other, but not at multiples of a page.
constexpr int64_t kRowDepth = kDepth + 16;
static_assert(kGroup * kRowDepth <= kGroupLanes * kDepth);
constexpr int64_t kFew = 10; ///< so many tiles are too few uses for a copy of a strip of B
constexpr int64_t kWorkspace = kWidePanel * kDepth + kGroupLanes * kDepth + kSums;
static_assert(kF32WorkspaceBytes == kWorkspace * 4);

/// The buffers of one thread.
struct Workspace {
  Workspace() : memory(static_cast<float *>(std::aligned_alloc(64, kF32WorkspaceBytes)), std::free) {
    std::memset(memory.get(), 0, kF32WorkspaceBytes); // takes the pages now
  }
  float *panel() const { return memory.get(); }
  float *group() const { return panel() + kWidePanel * kDepth; }
  float *sums() const { return group() + kGroupLanes * kDepth; }

  std::unique_ptr<float, void (*)(void *)> memory;
};

const Workspace &getWorkspace() {
  thread_local Workspace workspace;
  return workspace;
}

/// How many columns a panel has at most: all of A comes past each panel, a transposed one is packed for each. What is
/// packed of B leaves half of the second-level cache to all else, or a quarter of a small one.
int64_t getPanelColumns() {
  static const int64_t columns =
      ::sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2 * kWidePanel * kDepth * int64_t(sizeof(float)) ? kWidePanel : kPanel;
  return columns;
}

/// op(A) as rows, or op(B) as columns: element i of depth l is `data[i * strip + l * along]`. Strips are as wide as
/// tiles.
struct Side {
  const float *data;
  int64_t strip, along, extent;
  int64_t width; ///< of a strip

  int64_t count(int64_t begin) const { return std::min(width, extent - begin); }
};

/// How large the pieces of an extent are: multiples of a unit, `most` or less, evened out.
int64_t cut(int64_t extent, int64_t most, int64_t unit) {
  int64_t pieces = (extent + most - 1) / most;
  return ((extent + pieces - 1) / pieces + unit - 1) / unit * unit;
}

/// A tile's place: rows from `row` of a group and columns from `column` of a panel, all counted in the part.
struct Place {
  int64_t row, group, column, panel;
  int64_t depth;
  bool firstRows, firstColumns; ///< of the block
};

/// Part of a product, all of its depth.
class Part {
public:
  Part(const ProductF32 &p, const KernelsF32 &kernels, int64_t row, int64_t rows, int64_t column, int64_t columns,
       float *sums)
      : p(p), kernels(kernels), workspace(getWorkspace()), row(row), column(column),
        sums(sums), a{p.a + row * (p.transA ? 1 : p.lda), p.transA ? 1 : p.lda, p.transA ? p.lda : 1, rows, 0},
        b{p.b + column * (p.transB ? p.ldb : 1), p.transB ? p.ldb : 1, p.transB ? 1 : p.ldb, columns,
          kernels.tileColumns},
        packsA(p.transA ? columns > b.width : p.lda % 1024 == 0 && columns > 64) {
    a.width = cut(rows, kernels.tileRows, 1);
    group = cut(rows, std::min(kGroup / a.width, kGroupLanes / kernels.lanes) * a.width, a.width);
    groups = (rows + group - 1) / group;
    panel = cut(columns, getPanelColumns() / b.width * b.width, b.width);
    copiesB = !p.transB && rows > kFew * a.width;
  }

  void run() {
    if (a.extent > kFew * a.width) {
      bring(getAhead(b, 0, b.count(0), 0));
      bring(getAhead(a, groupBegin(0), groupBegin(0) + a.count(groupBegin(0)), 0));
    }
    for (int64_t j = 0; j < b.extent; j += panel)
      for (int64_t depth = 0; depth == 0 || depth < p.k; depth += kDepth)
        runBlock(j, depth);
  }

private:
  int64_t depths(int64_t depth) const { return std::min(kDepth, p.k - depth); }
  int64_t panelEnd(int64_t j) const { return std::min(j + panel, b.extent); }
  /// Where the group that comes `turn`th begins.
  int64_t groupBegin(int64_t turn) const { return (turn + groups * p.columnPiece / p.columnPieces) % groups * group; }
  int64_t groupEnd(int64_t i) const { return std::min(i + group, a.extent); }

  void runBlock(int64_t j, int64_t depth) {
    for (int64_t turn = 0; turn < groups; ++turn)
      for (int64_t s = j, i = groupBegin(turn); s < panelEnd(j); s += b.width) {
        wantNext(turn, s, j, depth);
        for (int64_t t = i; t < groupEnd(i); t += a.width)
          multiply({t, i, s, j, depth, turn == 0 && t == i, s == j});
      }
  }

  /// What the tiles of a group with strip s bring nearer.
  void wantNext(int64_t turn, int64_t s, int64_t j, int64_t depth) {
    wanted[0] = wanted[1] = Ahead();
    int64_t next = s + b.width;
    bool isLast = next >= panelEnd(j);
    if (turn == 0 && !isLast)
      wanted[0] = getAhead(b, next, std::min(next + b.width, panelEnd(j)), depth);
    int64_t strips = (panelEnd(j) - j + b.width - 1) / b.width, strip = (s - j) / b.width;
    if (++turn == groups) { // the next block
      turn = 0;
      depth += kDepth;
      if (depth >= p.k) {
        depth = 0;
        j = panelEnd(j);
        if (j == b.extent)
          return;
      }
      if (isLast)
        wanted[0] = getAhead(b, j, std::min(j + b.width, b.extent), depth);
    }
    // Each strip's share of the group.
    Ahead rows = getAhead(a, groupBegin(turn), groupEnd(groupBegin(turn)), depth);
    int64_t first = rows.rows * strip / strips;
    wanted[1] = {rows.row + first * rows.step, rows.rows * (strip + 1) / strips - first, rows.step, rows.length};
  }
  Ahead getAhead(const Side &side, int64_t begin, int64_t end, int64_t depth) const {
    const float *first = side.data + begin * side.strip + depth * side.along;
    if (side.strip == 1)
      return {first, depths(depth), side.along, end - begin};
    return {first, end - begin, side.strip, depths(depth)};
  }

  /// All at once, where nothing else can be done meanwhile.
  static void bring(const Ahead &ahead) {
    for (int64_t i = 0; i < ahead.rows; ++i)
      for (int64_t at = 0; at < ahead.length; at += 16)
        __builtin_prefetch(ahead.row + i * ahead.step + at, 0, 2);
  }

  void multiply(const Place &at) {
    TileF32 tile;
    tile.depth = depths(at.depth);
    tile.columns = b.count(at.column);
    readA(at, tile);
    bool copies = readB(at, tile);
    if (wanted[0].rows <= 0)
      std::swap(wanted[0], wanted[1]);
    tile.ahead = &wanted[0];
    write(at, tile);
    kernels.tiles[a.count(at.row) - 1][(tile.columns - 1) / kernels.lanes][!p.transA][copies](tile);
  }

  const float *sourceA(const Place &at) const { return a.data + at.row * a.strip + at.depth * a.along; }
  const float *sourceB(const Place &at) const { return b.data + at.column * b.strip + at.depth * b.along; }
  float *packedA(const Place &at) const {
    int64_t row = at.row - at.group;
    return workspace.group() + (p.transA ? row / a.width * kernels.lanes * kDepth : row * kRowDepth);
  }
  float *packedB(const Place &at) const { return workspace.panel() + (at.column - at.panel) * kDepth; }

  void readA(const Place &at, TileF32 &tile) const {
    tile.a = packsA ? packedA(at) : sourceA(at);
    tile.ldA = !packsA ? p.lda : p.transA ? kernels.lanes : kRowDepth;
    if (!packsA || !at.firstColumns)
      return;
    if (!p.transA)
      for (int64_t i = 0; i < a.count(at.row); ++i)
        std::memcpy(packedA(at) + i * kRowDepth, sourceA(at) + i * a.strip,
                    static_cast<size_t>(tile.depth) * sizeof(float));
    else if (at.row == at.group)
      kernels.packRows(sourceA(at), a.along, groupEnd(at.group) - at.group, a.width, tile.depth, packedA(at),
                       kernels.lanes * kDepth);
  }

  /// Where a tile reads B, and whether it is to copy it.
  bool readB(const Place &at, TileF32 &tile) const {
    bool asItLies = (at.firstRows || !copiesB) && !p.transB && tile.columns == b.width;
    tile.b = asItLies ? sourceB(at) : packedB(at);
    tile.ldB = asItLies ? p.ldb : (tile.columns + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    tile.packedB = packedB(at);
    if (at.firstRows && !asItLies)
      kernels.pack(sourceB(at), b.strip, b.along, tile.columns, tile.depth, packedB(at));
    return asItLies && copiesB;
  }

  void write(const Place &at, TileF32 &tile) const {
    float *c = p.c + (row + at.row) * p.ldc + column + at.column;
    float *between = sums ? sums + at.row * b.extent + at.column : c;
    int64_t ldBetween = sums ? b.extent : p.ldc;
    if (at.depth > 0) {
      tile.from = between;
      tile.ldFrom = ldBetween;
    }
    tile.to = between;
    tile.ldTo = ldBetween;
    if (at.depth + kDepth < p.k)
      return;
    tile.to = c;
    tile.ldTo = p.ldc;
    if (p.epilogue.bias)
      tile.bias = p.epilogue.bias + column + at.column;
    if (p.epilogue.residual) {
      tile.residual = p.epilogue.residual + (row + at.row) * p.epilogue.ldr + column + at.column;
      tile.ldr = p.epilogue.ldr;
    }
  }

  const ProductF32 &p;
  const KernelsF32 &kernels;
  const Workspace &workspace;
  int64_t row, column;
  float *sums;
  Side a, b;
  /// Rows of A at the same places of their pages share too few places of the first-level cache, and one depth of a
  /// transposed A may be a page of its own.
  bool packsA;
  bool copiesB;    ///< in the tiles that read it first
  int64_t group, groups, panel;
  Ahead wanted[2];
};

} // namespace

static void runByBlas(const ProductF32 &p) {
  bool adds = p.epilogue.residual == p.c;
  cblas_sgemm(CblasRowMajor, p.transA ? CblasTrans : CblasNoTrans, p.transB ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(p.m), static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0f, p.a,
              static_cast<blasint>(p.lda), p.b, static_cast<blasint>(p.ldb), adds ? 1.0f : 0.0f, p.c,
              static_cast<blasint>(p.ldc));
  if (!p.epilogue.bias && (adds || !p.epilogue.residual))
    return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      float &value = p.c[i * p.ldc + j];
      if (p.epilogue.bias)
        value += p.epilogue.bias[j];
      if (p.epilogue.residual && !adds)
        value += p.epilogue.residual[i * p.epilogue.ldr + j];
    }
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
    int64_t columns = cut(p.n, kPanel, kernels.tileColumns), rows = kSums / columns;
    for (int64_t column = 0; column < p.n; column += columns)
      for (int64_t row = 0; row < p.m; row += rows)
        Part(p, kernels, row, std::min(rows, p.m - row), column, std::min(columns, p.n - column), getWorkspace().sums())
            .run();
    return;
  }
#endif
  runByBlas(p);
}
