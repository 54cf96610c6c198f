//===- GemmBF16AMX.cpp ----------------------------------------------------===//

#include "GemmBF16Squares.h"
#include "GemmBF16Units.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPMD_TILES __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

using namespace spmd::runtime;

namespace {

// [Note: loops of a GEMM by AMX] The core multiplies two tiles in 16 cycles but fetches only half a line per cycle
// from the second-level cache, so operands decide about speed. A square of A by one of B is four products of tiles,
// whose sums stay in registers along k. A block of columns of B lies packed in the second-level cache, and
// strips of 32 rows of A pass by it: a strip stays in the first-level cache, from which the columns, loaded as a
// stream, do not drive it out. Rows of A that lie as tiles want them are not packed. Others are, several strips at a
// time, as B is: so that whole lines and rows of neighbouring lines are read. Packing comes first, since it is slower
// between products of tiles than alone. Rounding is not: results are rounded while the next ones are summed.
constexpr int64_t kColumns = 384 * 1024; ///< elements of a block of columns
constexpr int64_t kManyColumns = 1024;
constexpr int64_t kFewColumns = 384;       ///< of a block, before its k is cut
constexpr int64_t kFewForPackedRows = 768; ///< likewise: each block packs them again
constexpr int64_t kRows = 128 * 1024;      ///< elements of the strips of A that are packed together
constexpr int64_t kStripK = 768;           ///< of a strip in the first-level cache
constexpr int64_t kSums = 384 * 1024;      ///< of a block of C, between blocks of k
constexpr int64_t kFewRows = 192;
constexpr int64_t kWorkspaceBytes = (kColumns + kRows + 3 * kSquareElements) * 2 + (kSums + 3 * kSquareElements) * 4;
static_assert(kWorkspaceBytes <= kBF16WorkspaceBytes && kColumns / kFewColumns * kSquareSide <= kRows);

struct Workspace {
  explicit Workspace(char *memory) : memory(memory) {}
  uint16_t *columns() const { return reinterpret_cast<uint16_t *>(memory); }
  uint16_t *rows() const { return columns() + kColumns; }
  uint16_t *square(int64_t i) const { return rows() + kRows + i * kSquareElements; }
  float *sums() const { return reinterpret_cast<float *>(square(3)); }
  float *results(int64_t turn) const { return sums() + kSums + turn % 2 * kSquareElements; }
  float *olds() const { return sums() + kSums + 2 * kSquareElements; }

  char *memory;
};

int64_t countSides(int64_t extent) { return (extent + kSquareSide - 1) / kSquareSide; }

/// How large the pieces of an extent are: multiples of a side, `most` or less, evened out.
int64_t cut(int64_t extent, int64_t most) {
  int64_t pieces = (extent + most - 1) / most;
  return countSides((extent + pieces - 1) / pieces) * kSquareSide;
}

/// One operand: `extent` rows of A or columns of B, all of k.
struct Side {
  const uint16_t *data;
  int64_t ld, extent, k;
  bool isAlongK; ///< consecutive k lie side by side
  PackPart pack;

  /// The square that begins at row or column i and k = l.
  const uint16_t *at(int64_t i, int64_t l) const { return isAlongK ? data + i * ld + l : data + l * ld + i; }
  /// Whether tiles are loaded from where they lie: whole squares of lines.
  bool liesAsTiles(int64_t begin) const {
    return pack == copyPart && begin + kSquareSide <= extent && k % kSquareSide == 0 && ld % kSquareSide == 0 &&
           reinterpret_cast<uintptr_t>(data) % 64 == 0;
  }
};

/// Squares side by side along k, whose rows are `ld` apart.
struct Strip {
  const uint16_t *first;
  int64_t ld, step;
};

/// A range of rows or columns, and of k.
struct Range {
  int64_t begin, end, k, endK;

  int64_t strips() const { return countSides(end - begin); }
  int64_t squares() const { return countSides(endK - k); }
};

/// Packs strip after strip, of each square after square, from the beginning in the order in which lines lie.
void packSquares(const Side &side, const Range &range, uint16_t *scratch, uint16_t *to) {
  auto packSquare = [&](int64_t strip, int64_t square) {
    int64_t i = range.begin + strip * kSquareSide, l = range.k + square * kSquareSide, ld = side.ld;
    int64_t count = std::min(kSquareSide, range.end - i), countK = std::min(kSquareSide, range.endK - l);
    const uint16_t *from = side.at(i, l);
    if (count < kSquareSide || countK < kSquareSide) {
      loadPart(from, ld, side.isAlongK ? count : countK, side.isAlongK ? countK : count, scratch);
      from = scratch;
      ld = kSquareSide;
    }
    for (int64_t part = 0; part < kSquareParts; ++part)
      side.pack(from, ld, to + (strip * range.squares() + square) * kSquareElements, part);
  };
  for (int64_t outer = 0; outer < (side.isAlongK ? range.strips() : range.squares()); ++outer)
    for (int64_t inner = 0; inner < (side.isAlongK ? range.squares() : range.strips()); ++inner)
      side.isAlongK ? packSquare(outer, inner) : packSquare(inner, outer);
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
const TileConfiguration kConfiguration;

SPMD_TILES void configure() { _tile_loadconfig(&kConfiguration); }
SPMD_TILES void release() { _tile_release(); }

class Multiplication {
public:
  Multiplication(const GemmProblemBF16 &p, bool isTransposed, char *memory)
      : p(p), isTransposed(isTransposed), workspace(memory),
        a{p.a, p.lda, p.m, p.k, !p.transA, p.transA ? transposePart : copyPart},
        b{p.b, p.ldb, p.n, p.k, p.transB, p.transB ? pairColumnsPart : pairRowsPart} {
    blockK = cut(p.k, kColumns / (a.liesAsTiles(0) ? kFewColumns : kFewForPackedRows));
    stripK = cut(blockK, kStripK);
    columns = cut(p.n, std::min(kManyColumns, kColumns / blockK / kSquareSide * kSquareSide));
    rows = p.k > blockK ? cut(p.m, kSums / columns / kSquareSide * kSquareSide) : p.m;
    packedRows = kRows / blockK / kSquareSide * kSquareSide;
  }

  void run() {
    for (int64_t column = 0; column < p.n; column += columns)
      for (int64_t row = 0; row < p.m; row += rows)
        for (int64_t k = 0; k < p.k; k += blockK) {
          int64_t endK = std::min(k + blockK, p.k);
          runBlock({row, std::min(row + rows, p.m), k, endK}, {column, std::min(column + columns, p.n), k, endK});
        }
    finishResult();
  }

private:
  void runBlock(const Range &rowRange, const Range &columnRange) {
    pack(b, columnRange, workspace.columns());
    float *sums = workspace.sums();
    for (int64_t row = rowRange.begin, packed = row; row < rowRange.end; row += kSquareSide) {
      bool isPacked = !a.liesAsTiles(row);
      if (isPacked && row >= packed) {
        group = {row, std::min(row + packedRows, rowRange.end), rowRange.k, rowRange.endK};
        packed = group.end;
        pack(a, group, workspace.rows());
      }
      for (int64_t k = rowRange.k; k < rowRange.endK; k += stripK) {
        int64_t endK = std::min(k + stripK, rowRange.endK);
        Strip strip = {a.at(row, k), a.ld, kSquareSide};
        if (isPacked)
          strip = {workspace.rows() + group.strips() * (k - group.k) * kSquareSide +
                       (row - group.begin) * countSides(endK - k) * kSquareSide,
                   kSquareSide, kSquareElements};
        runStrip(strip, row, {columnRange.begin, columnRange.end, k, endK},
                 workspace.columns() + columnRange.strips() * (k - columnRange.k) * kSquareSide, sums);
      }
      if (blockK < p.k)
        sums += columnRange.strips() * kSquareElements;
    }
  }

  /// One range of k after the other, each as long as those of strips.
  void pack(const Side &side, const Range &range, uint16_t *to) const {
    for (int64_t k = range.k; k < range.endK; k += stripK) {
      Range part = {range.begin, range.end, k, std::min(k + stripK, range.endK)};
      packSquares(side, part, workspace.square(0), to);
      to += part.strips() * part.squares() * kSquareElements;
    }
  }

  /// A strip of rows with columns and k of a block.
  void runStrip(const Strip &strip, int64_t row, const Range &range, const uint16_t *packed, float *sums) {
    bool isLast = range.endK == p.k;
    for (int64_t column = range.begin; column < range.end; column += kSquareSide) {
      const float *from = range.k > 0 ? sums : p.accumulate ? loadOld(row, column) : nullptr;
      float *to = isLast ? workspace.results(++resultTurn) : sums;
      multiply(strip, packed, range.squares(), from, to);
      finishResult();
      if (isLast)
        result = {row, column, to, 0};
      packed += range.squares() * kSquareElements;
      sums += kSquareElements;
    }
  }

  /// The products of two strips of squares, added up.
  SPMD_TILES void multiply(const Strip &strip, const uint16_t *b, int64_t squares, const float *from, float *to) {
    constexpr int64_t line = 64;
    if (from) {
      _tile_loadd(0, from, line);
      _tile_loadd(1, from + 256, line);
      _tile_loadd(2, from + 512, line);
      _tile_loadd(3, from + 768, line);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    const uint16_t *a = strip.first, *below = a + 16 * strip.ld;
    for (int64_t i = 0; i < squares; ++i, a += strip.step, below += strip.step, b += kSquareElements) {
      _tile_loadd(4, a, 2 * strip.ld);
      _tile_stream_loadd(6, b, line);
      _tile_dpbf16ps(0, 4, 6);
      _tile_stream_loadd(7, b + kSquareElements / 2, line);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, below, 2 * strip.ld);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
      if (result.tiles)
        writeResultPart();
    }
    _tile_stored(0, to, line);
    _tile_stored(1, to + 256, line);
    _tile_stored(2, to + 512, line);
    _tile_stored(3, to + 768, line);
  }

  /// What C was, where it is added to.
  const float *loadOld(int64_t row, int64_t column) const {
    int64_t rowsOfC = std::min(kSquareSide, p.m - row), columnsOfC = std::min(kSquareSide, p.n - column);
    uint16_t *square = workspace.square(1), *other = workspace.square(2);
    if (isTransposed) {
      loadPart(p.c + column * p.ldc + row, p.ldc, columnsOfC, rowsOfC, other);
      for (int64_t part = 0; part < kSquareParts; ++part)
        transposePart(other, kSquareSide, square, part);
    } else {
      loadPart(p.c + row * p.ldc + column, p.ldc, rowsOfC, columnsOfC, square);
    }
    widenToTiles(square, workspace.olds());
    return workspace.olds();
  }

  /// Rounds eight rows of the result that is not yet in C, or stores them.
  void writeResultPart() {
    int64_t rowsOfC = std::min(kSquareSide, p.m - result.row), columnsOfC = std::min(kSquareSide, p.n - result.column);
    uint16_t *square = workspace.square(1), *other = workspace.square(2);
    int64_t part = result.part++ % kSquareParts, begin = 8 * part;
    bool isFirstTurn = result.part <= kSquareParts;
    if (isTransposed && isFirstTurn) {
      roundPart(result.tiles, square, kSquareSide, part);
      return;
    }
    if (isTransposed) {
      transposePart(square, kSquareSide, other, part);
      storePart(other + begin * kSquareSide, p.c + (result.column + begin) * p.ldc + result.row, p.ldc,
                std::min<int64_t>(8, columnsOfC - begin), rowsOfC);
    } else if (rowsOfC == kSquareSide && columnsOfC == kSquareSide) {
      roundPart(result.tiles, p.c + result.row * p.ldc + result.column, p.ldc, part);
    } else {
      roundPart(result.tiles, square, kSquareSide, part);
      storePart(square + begin * kSquareSide, p.c + (result.row + begin) * p.ldc + result.column, p.ldc,
                std::min<int64_t>(8, rowsOfC - begin), columnsOfC);
    }
    if (part == kSquareParts - 1)
      result.tiles = nullptr;
  }
  void finishResult() {
    while (result.tiles)
      writeResultPart();
  }

  const GemmProblemBF16 &p;
  bool isTransposed;
  Workspace workspace;
  Side a, b;
  int64_t rows, columns, blockK;   ///< of a block
  int64_t packedRows, stripK;      ///< in it
  Range group = {};                ///< the rows that are packed
  struct {
    int64_t row, column;
    const float *tiles; ///< null if all of it is in C
    int64_t part;
  } result = {0, 0, nullptr, 0};
  int64_t resultTurn = 0;
};

} // namespace

bool spmd::runtime::hasAMX() {
  __builtin_cpu_init();
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return false;
  constexpr unsigned bf16 = 1u << 22, tiles = 1u << 24;
  if (!(d & bf16) || !(d & tiles))
    return false;
  // Linux lends the registers to a process that asks for them.
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

void spmd::runtime::prepareThreadAMX() {
  configure(); // the kernel makes room for a thread's tiles at their first use
  release();
}

void spmd::runtime::runGemmAMX(const GemmProblemBF16 &gemm, char *workspace) {
  GemmProblemBF16 p = gemm;
  // Few rows do not repay packing all columns: C^T = B^T A^T packs the rows and loads columns as they lie.
  bool isTransposed = p.m < kFewRows && p.m < p.n && p.transB;
  if (isTransposed) {
    std::swap(p.a, p.b);
    std::swap(p.lda, p.ldb);
    std::swap(p.m, p.n);
    bool transA = p.transA;
    p.transA = !p.transB;
    p.transB = !transA;
  }
  configure();
  Multiplication(p, isTransposed, workspace).run();
  release();
}

#else

bool spmd::runtime::hasAMX() { return false; }
void spmd::runtime::prepareThreadAMX() {}
void spmd::runtime::runGemmAMX(const GemmProblemBF16 &, char *) {}

#endif
