//===- GemmBlocked.cpp - GEMMs of f32 and f64 -----------------------------===//

#include "GemmF32.h"
#include "GemmF64.h"
#include "GemmKernels.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

using namespace spmd::runtime;

namespace {

// [Note: loops of a GEMM] A block of C is a panel of columns and one block of k. The panel's part of B is
// packed strip by strip, in the tiles of the first group of rows, and stays in the second-level cache; rows of A come
// past it in groups, a tile high each, every group with all strips of the panel. A strip of B that lies as tiles want
// it is copied by the first tile that reads it, while it multiplies, unless few tiles or none read it after it; a
// transposed one is packed by itself. Rows of A are read where they lie, or copied where they would share too few
// places of the first-level cache. A transposed A is packed a group at a time: each k of it may be a page of its own,
// and each tile would have to find all of them. Meanwhile tiles bring nearer what comes next: the next strip of B in
// the first group, the next group of A in all of them.
constexpr int64_t kPanel = 384, kWidePanel = 512, kGroup = 84;
constexpr int64_t kGroupLanes = 2 * kGroup; ///< a strip of A is packed as whole vectors per k, wider than itself
constexpr int64_t kFew = 10;                ///< so many tiles are too few to wait for what they read

/// What depends on how many bytes an element has: a block of k has as many bytes for all of them.
template <typename Element>
struct Sizes {
  static constexpr int64_t kBytes = sizeof(Element);
  static constexpr int64_t kLine = 64 / kBytes, kPage = 4096 / kBytes;
  static constexpr int64_t kBlockK = kF32BlockK * int64_t(sizeof(float)) / kBytes;
  /// Of copied rows of A: one behind the other, but not at multiples of a page.
  static constexpr int64_t kRowStride = kBlockK + kLine;
  static_assert(kGroup * kRowStride <= kGroupLanes * kBlockK);
  static constexpr int64_t kSums = kBlockK * kPanel; ///< of a block of C whose sums lie in the workspace
  static constexpr int64_t kWorkspaceBytes = (kWidePanel * kBlockK + kGroupLanes * kBlockK + kSums) * kBytes;
};
static_assert(Sizes<float>::kWorkspaceBytes == kF32WorkspaceBytes && Sizes<float>::kBlockK == kF32BlockK);
static_assert(Sizes<double>::kWorkspaceBytes == kF64WorkspaceBytes && Sizes<double>::kBlockK == kF64BlockK);

/// The buffers of one thread.
template <typename Element>
struct Workspace {
  static constexpr int64_t kBytes = Sizes<Element>::kWorkspaceBytes, kBlockK = Sizes<Element>::kBlockK;
  Workspace() : memory(static_cast<Element *>(std::aligned_alloc(64, kBytes)), std::free) {
    std::memset(memory.get(), 0, kBytes); // takes the pages now
  }
  Element *panel() const { return memory.get(); }
  Element *group() const { return panel() + kWidePanel * kBlockK; }
  Element *sums() const { return group() + kGroupLanes * kBlockK; }

  std::unique_ptr<Element, void (*)(void *)> memory;
};

template <typename Element>
const Workspace<Element> &getWorkspace() {
  thread_local Workspace<Element> workspace;
  return workspace;
}

/// How many columns a panel has at most: all of A comes past each panel, a transposed one is packed for each. What is
/// packed of B leaves half of the second-level cache to all else, or a quarter of a small one.
int64_t getPanelColumns() {
  static const int64_t columns =
      ::sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2 * kWidePanel * kF32BlockK * int64_t(sizeof(float)) ? kWidePanel : kPanel;
  return columns;
}

/// op(A) as rows, or op(B) as columns: element i of k = l is `data[i * strip + l * along]`. Strips are as wide as
/// tiles.
template <typename Element>
struct Side {
  const Element *data;
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
  int64_t k;
  bool firstRows, firstColumns; ///< of the block
};

/// Part of a GEMM, all of its k.
template <typename Element>
class Part {
public:
  Part(const GemmWithEpilogue<Element> &p, const Kernels<Element> &kernels, int64_t row, int64_t rows, int64_t column,
       int64_t columns, Element *sums)
      : p(p), kernels(kernels), workspace(getWorkspace<Element>()), row(row), column(column), sums(sums),
        a{p.a + row * (p.transA ? 1 : p.lda), p.transA ? 1 : p.lda, p.transA ? p.lda : 1, rows, 0},
        b{p.b + column * (p.transB ? p.ldb : 1), p.transB ? p.ldb : 1, p.transB ? 1 : p.ldb, columns,
          kernels.tileColumns},
        packsA(p.transA ? columns > b.width : p.lda % Sizes<Element>::kPage == 0 && columns > 64) {
    a.width = cut(rows, kernels.tileRows, 1);
    lanesA = (a.width + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    group = cut(rows, std::min(kGroup / a.width, kGroupLanes / lanesA) * a.width, a.width);
    groups = (rows + group - 1) / group;
    panel = cut(columns, getPanelColumns() / b.width * b.width, b.width);
    copiesB = !p.transB && rows > kernels.fewTiles * a.width;
  }

  void run() {
    if (a.extent > kFew * a.width) {
      bring(getAhead(b, 0, b.count(0), 0));
      bring(getAhead(a, groupBegin(0), groupBegin(0) + a.count(groupBegin(0)), 0));
    }
    for (int64_t j = 0; j < b.extent; j += panel)
      for (int64_t k = 0; k == 0 || k < p.k; k += kBlockK)
        runBlock(j, k);
  }

private:
  using Ahead = spmd::runtime::Ahead<Element>;
  using Tile = spmd::runtime::Tile<Element>;
  static constexpr int64_t kBlockK = Sizes<Element>::kBlockK, kRowStride = Sizes<Element>::kRowStride;

  int64_t countK(int64_t k) const { return std::min(kBlockK, p.k - k); }
  int64_t panelEnd(int64_t j) const { return std::min(j + panel, b.extent); }
  /// Where the group that comes `turn`th begins.
  int64_t groupBegin(int64_t turn) const { return (turn + groups * p.columnPiece / p.columnPieces) % groups * group; }
  int64_t groupEnd(int64_t i) const { return std::min(i + group, a.extent); }

  void runBlock(int64_t j, int64_t k) {
    for (int64_t turn = 0; turn < groups; ++turn)
      for (int64_t s = j, i = groupBegin(turn); s < panelEnd(j); s += b.width) {
        wantNext(turn, s, j, k);
        for (int64_t t = i; t < groupEnd(i); t += a.width)
          multiply({t, i, s, j, k, turn == 0 && t == i, s == j});
      }
  }

  /// What the tiles of a group with strip s bring nearer.
  void wantNext(int64_t turn, int64_t s, int64_t j, int64_t k) {
    wanted[0] = wanted[1] = Ahead();
    int64_t next = s + b.width;
    bool isLast = next >= panelEnd(j);
    if (turn == 0 && !isLast)
      wanted[0] = getAhead(b, next, std::min(next + b.width, panelEnd(j)), k);
    int64_t strips = (panelEnd(j) - j + b.width - 1) / b.width, strip = (s - j) / b.width;
    if (++turn == groups) { // the next block
      turn = 0;
      k += kBlockK;
      if (k >= p.k) {
        k = 0;
        j = panelEnd(j);
        if (j == b.extent)
          return;
      }
      if (isLast)
        wanted[0] = getAhead(b, j, std::min(j + b.width, b.extent), k);
    }
    // Each strip's share of the group.
    Ahead rows = getAhead(a, groupBegin(turn), groupEnd(groupBegin(turn)), k);
    int64_t first = rows.rows * strip / strips;
    wanted[1] = {rows.row + first * rows.step, rows.rows * (strip + 1) / strips - first, rows.step, rows.length};
  }
  Ahead getAhead(const Side<Element> &side, int64_t begin, int64_t end, int64_t k) const {
    const Element *first = side.data + begin * side.strip + k * side.along;
    if (side.strip == 1)
      return {first, countK(k), side.along, end - begin};
    return {first, end - begin, side.strip, countK(k)};
  }

  /// All at once, where nothing else can be done meanwhile.
  static void bring(const Ahead &ahead) {
    for (int64_t i = 0; i < ahead.rows; ++i)
      for (int64_t at = 0; at < ahead.length; at += Sizes<Element>::kLine)
        __builtin_prefetch(ahead.row + i * ahead.step + at, 0, 2);
  }

  void multiply(const Place &at) {
    Tile tile;
    tile.k = countK(at.k);
    tile.columns = b.count(at.column);
    readA(at, tile);
    bool copies = readB(at, tile);
    if (wanted[0].rows <= 0)
      std::swap(wanted[0], wanted[1]);
    tile.ahead = &wanted[0];
    write(at, tile);
    kernels.tiles[a.count(at.row) - 1][(tile.columns - 1) / kernels.lanes][!p.transA][copies](tile);
  }

  const Element *sourceA(const Place &at) const { return a.data + at.row * a.strip + at.k * a.along; }
  const Element *sourceB(const Place &at) const { return b.data + at.column * b.strip + at.k * b.along; }
  Element *packedA(const Place &at) const {
    int64_t row = at.row - at.group;
    return workspace.group() + (p.transA ? row / a.width * lanesA * kBlockK : row * kRowStride);
  }
  Element *packedB(const Place &at) const { return workspace.panel() + (at.column - at.panel) * kBlockK; }

  void readA(const Place &at, Tile &tile) const {
    tile.a = packsA ? packedA(at) : sourceA(at);
    tile.ldA = !packsA ? p.lda : p.transA ? lanesA : kRowStride;
    if (!packsA || !at.firstColumns)
      return;
    if (!p.transA)
      for (int64_t i = 0; i < a.count(at.row); ++i)
        std::memcpy(packedA(at) + i * kRowStride, sourceA(at) + i * a.strip,
                    static_cast<size_t>(tile.k) * sizeof(Element));
    else if (at.row == at.group)
      kernels.packRows(sourceA(at), a.along, groupEnd(at.group) - at.group, a.width, tile.k, packedA(at),
                       lanesA * kBlockK);
  }

  /// Where a tile reads B, and whether it is to copy it.
  bool readB(const Place &at, Tile &tile) const {
    bool asItLies = (at.firstRows || !copiesB) && !p.transB && tile.columns == b.width;
    tile.b = asItLies ? sourceB(at) : packedB(at);
    tile.ldB = asItLies ? p.ldb : (tile.columns + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    tile.packedB = packedB(at);
    if (at.firstRows && !asItLies)
      kernels.pack(sourceB(at), b.strip, b.along, tile.columns, tile.k, packedB(at));
    return asItLies && copiesB;
  }

  void write(const Place &at, Tile &tile) const {
    Element *c = p.c + (row + at.row) * p.ldc + column + at.column;
    Element *between = sums ? sums + at.row * b.extent + at.column : c;
    int64_t ldBetween = sums ? b.extent : p.ldc;
    if (at.k > 0) {
      tile.from = between;
      tile.ldFrom = ldBetween;
    }
    tile.to = between;
    tile.ldTo = ldBetween;
    if (at.k + kBlockK < p.k)
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

  const GemmWithEpilogue<Element> &p;
  const Kernels<Element> &kernels;
  const Workspace<Element> &workspace;
  int64_t row, column;
  Element *sums;
  Side<Element> a, b;
  int64_t lanesA; ///< of a packed strip of A
  /// Rows of A at the same places of their pages share too few places of the first-level cache, and each k of a
  /// transposed A may be a page of its own.
  bool packsA;
  bool copiesB;    ///< in the tiles that read it first
  int64_t group, groups, panel;
  Ahead wanted[2];
};

/// Where there are no vectors.
template <typename Element>
void runByElement(const GemmWithEpilogue<Element> &p) {
  constexpr int64_t kBlockK = Sizes<Element>::kBlockK;
  int64_t row = p.transA ? 1 : p.lda, alongA = p.transA ? p.lda : 1;
  int64_t column = p.transB ? p.ldb : 1, alongB = p.transB ? 1 : p.ldb;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      Element value = 0;
      for (int64_t begin = 0; begin < p.k; begin += kBlockK) {
        Element sum = 0;
        for (int64_t l = begin; l < std::min(begin + kBlockK, p.k); ++l)
          sum = std::fma(p.a[i * row + l * alongA], p.b[j * column + l * alongB], sum);
        value = begin == 0 ? sum : value + sum;
      }
      if (p.epilogue.bias)
        value += p.epilogue.bias[j];
      if (p.epilogue.residual)
        value += p.epilogue.residual[i * p.epilogue.ldr + j];
      p.c[i * p.ldc + j] = value;
    }
}

#if defined(__x86_64__)
template <typename Element>
void runByTiles(const GemmWithEpilogue<Element> &p, const Kernels<Element> &kernels) {
  if (p.k <= Sizes<Element>::kBlockK || p.epilogue.residual != p.c)
    return Part<Element>(p, kernels, 0, p.m, 0, p.n, nullptr).run();
  int64_t columns = cut(p.n, kPanel, kernels.tileColumns), rows = Sizes<Element>::kSums / columns;
  Element *sums = getWorkspace<Element>().sums();
  for (int64_t column = 0; column < p.n; column += columns)
    for (int64_t row = 0; row < p.m; row += rows)
      Part<Element>(p, kernels, row, std::min(rows, p.m - row), column, std::min(columns, p.n - column), sums).run();
}
#endif

template <typename Element>
void runBlocked(GemmWithEpilogue<Element> p, VectorUnit unit) {
  if (p.m == 0 || p.n == 0)
    return;
  if (p.accumulate) {
    p.epilogue.residual = p.c;
    p.epilogue.ldr = p.ldc;
  }
#if defined(__x86_64__)
  if (unit != VectorUnit::None)
    return runByTiles(p, unit == VectorUnit::AVX512 ? Kernels<Element>::kAVX512 : Kernels<Element>::kAVX2);
#endif
  runByElement(p);
}

template <typename Element>
void prepareThread() {
  if (getVectorUnit() != VectorUnit::None)
    getWorkspace<Element>();
}

} // namespace

VectorUnit spmd::runtime::getVectorUnit() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return VectorUnit::AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return VectorUnit::AVX2;
#endif
  return VectorUnit::None;
}

void spmd::runtime::prepareThreadF32() { prepareThread<float>(); }
void spmd::runtime::prepareThreadF64() { prepareThread<double>(); }

void spmd::runtime::runGemmF32(const GemmProblemF32 &gemm, VectorUnit unit) { runBlocked(gemm, unit); }
void spmd::runtime::runGemmF64(const GemmProblemF64 &gemm, VectorUnit unit) { runBlocked(gemm, unit); }
