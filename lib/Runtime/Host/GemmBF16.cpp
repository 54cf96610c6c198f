//===- GemmBF16.cpp -------------------------------------------------------===//

#include "GemmBF16.h"
#include "GemmBF16Units.h"
#include "GemmF32.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"
#include "spmd/Runtime/Core/HalfFloat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__x86_64__)
#include <immintrin.h>
// Kernels of artifacts need AVX2 anyway.
#define SPMD_AVX2 __attribute__((target("avx2,fma")))
#define SPMD_AVX512BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#else
#define SPMD_AVX2
#endif

using namespace spmd::runtime;

namespace {

// Blocks of C of kRows x kColumns are summed over kBlockK of k at a time: the packed block of A stays in the
// second-level cache, and packing costs a few percent of the GEMM.
constexpr int64_t kRows = 240, kColumns = 512, kBlockK = 1024;
static_assert(kBF16WorkspaceBytes == (kRows + kColumns) * kBlockK * 4 + kRows * kColumns * 4);

/// The blocks of one thread. Packed pairs take half the room of widened elements.
struct Workspace {
  Workspace() : memory(static_cast<char *>(std::aligned_alloc(64, kBF16WorkspaceBytes)), std::free) {
    std::memset(memory.get(), 0, kBF16WorkspaceBytes); // takes the pages now
  }
  float *a() const { return reinterpret_cast<float *>(memory.get()); }
  float *b() const { return a() + kRows * kBlockK; }
  float *sums() const { return b() + kColumns * kBlockK; }

  std::unique_ptr<char, void (*)(void *)> memory;
};

const Workspace &getWorkspace() {
  thread_local Workspace workspace;
  return workspace;
}

float widen(uint16_t bits) {
  BFloat16 value;
  value.bits = bits;
  return static_cast<float>(value);
}

/// A block of C, its place in the operands, and the part of k that is next: countK from k on.
struct Block {
  const GemmProblemBF16 &p;
  int64_t row, rows, column, columns, k, countK;

  /// op(A)'s element (row + i, k + l) is `a[i * strip + l * along]`, and likewise op(B)'s (k + l, column + j).
  const uint16_t *a() const { return p.a + row * stripA() + k * alongA(); }
  const uint16_t *b() const { return p.b + column * stripB() + k * alongB(); }
  int64_t stripA() const { return p.transA ? 1 : p.lda; }
  int64_t alongA() const { return p.transA ? p.lda : 1; }
  int64_t stripB() const { return p.transB ? p.ldb : 1; }
  int64_t alongB() const { return p.transB ? 1 : p.ldb; }
};

//===----------------------------------------------------------------------===//
// Widened
//===----------------------------------------------------------------------===//

/// Rows of `columns` elements, widened side by side.
SPMD_AVX2 void widenRows(const uint16_t *from, int64_t ld, int64_t rows, int64_t columns, float *to) {
  for (int64_t i = 0; i < rows; ++i, from += ld, to += columns)
    for (int64_t j = 0; j < columns; ++j)
      to[j] = widen(from[j]);
}

void multiplyWidened(const Block &block, bool packsB, bool adds, const Workspace &workspace) {
  const GemmProblemBF16 &p = block.p;
  int64_t lda = p.transA ? block.rows : block.countK, ldb = p.transB ? block.countK : block.columns;
  widenRows(block.a(), p.lda, p.transA ? block.countK : block.rows, lda, workspace.a());
  if (packsB)
    widenRows(block.b(), p.ldb, p.transB ? block.columns : block.countK, ldb, workspace.b());
  static const VectorUnit unit = getVectorUnit();
  runGemmF32({{block.rows, block.columns, block.countK, workspace.a(), workspace.b(), workspace.sums(), lda, ldb,
               kColumns, p.transA, p.transB, adds}},
             unit);
}

//===----------------------------------------------------------------------===//
// By AVX512-BF16
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)

// A tile of sums in registers: 12 rows of two vectors of 16 columns.
constexpr int64_t kTileRows = 12, kTileColumns = 32;
static_assert(kRows % kTileRows == 0 && kColumns % kTileColumns == 0 && kBlockK % 2 == 0);

uint32_t pairOf(uint16_t first, uint16_t second) { return first | static_cast<uint32_t>(second) << 16; }

/// Packs a strip of `width` rows (of A) or columns (of B), `count` of which exist, as pairs along k: pair p of
/// element i at `to[p * width + i]`. What does not exist is zero.
void packStrip(const uint16_t *from, int64_t strip, int64_t along, int64_t count, int64_t countK, int64_t width,
               uint32_t *to) {
  int64_t pairs = countK / 2, i = 0;
  if (strip == 1) {
    for (int64_t p = 0; p < pairs; ++p) {
      const uint16_t *first = from + 2 * p * along, *second = first + along;
      for (int64_t j = 0; j < count; ++j)
        to[p * width + j] = pairOf(first[j], second[j]);
    }
    i = count;
  }
  // Pairs lie in memory as they are wanted: a transpose of words, by 4 x 4.
  for (; i + 4 <= count; i += 4) {
    const uint16_t *rows[4];
    for (int64_t r = 0; r < 4; ++r)
      rows[r] = from + (i + r) * strip;
    int64_t p = 0;
    for (; p + 4 <= pairs; p += 4) {
      __m128 w0 = _mm_loadu_ps(reinterpret_cast<const float *>(rows[0] + 2 * p));
      __m128 w1 = _mm_loadu_ps(reinterpret_cast<const float *>(rows[1] + 2 * p));
      __m128 w2 = _mm_loadu_ps(reinterpret_cast<const float *>(rows[2] + 2 * p));
      __m128 w3 = _mm_loadu_ps(reinterpret_cast<const float *>(rows[3] + 2 * p));
      _MM_TRANSPOSE4_PS(w0, w1, w2, w3);
      auto *target = reinterpret_cast<float *>(to + p * width + i);
      _mm_storeu_ps(target, w0);
      _mm_storeu_ps(target + width, w1);
      _mm_storeu_ps(target + 2 * width, w2);
      _mm_storeu_ps(target + 3 * width, w3);
    }
    for (; p < pairs; ++p)
      for (int64_t r = 0; r < 4; ++r)
        to[p * width + i + r] = pairOf(rows[r][2 * p], rows[r][2 * p + 1]);
  }
  for (; i < count; ++i)
    for (int64_t p = 0; p < pairs; ++p)
      to[p * width + i] = pairOf(from[i * strip + 2 * p * along], from[i * strip + (2 * p + 1) * along]);
  if (countK % 2) {
    for (int64_t j = 0; j < count; ++j)
      to[pairs * width + j] = from[j * strip + (countK - 1) * along];
    ++pairs;
  }
  if (count < width)
    for (int64_t p = 0; p < pairs; ++p)
      std::fill(to + p * width + count, to + (p + 1) * width, 0);
}

/// All strips of a block, one behind the other.
void packStrips(const uint16_t *from, int64_t strip, int64_t along, int64_t count, int64_t countK, int64_t width,
                uint32_t *to) {
  for (int64_t i = 0; i < count; i += width)
    packStrip(from + i * strip, strip, along, std::min(width, count - i), countK, width, to + i * ((countK + 1) / 2));
}

/// One tile of sums, from zero or from what they are.
SPMD_AVX512BF16 void multiplyTile(const uint32_t *a, const uint32_t *b, int64_t pairs, bool adds, float *sums) {
  __m512 tile[kTileRows][2];
#pragma GCC unroll 12
  for (int64_t i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v)
      tile[i][v] = adds ? _mm512_loadu_ps(sums + i * kColumns + 16 * v) : _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p, a += kTileRows, b += kTileColumns) {
    auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
    auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + 16));
#pragma GCC unroll 12
    for (int64_t i = 0; i < kTileRows; ++i) {
      auto both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int32_t>(a[i])));
      tile[i][0] = _mm512_dpbf16_ps(tile[i][0], both, first);
      tile[i][1] = _mm512_dpbf16_ps(tile[i][1], both, second);
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v)
      _mm512_storeu_ps(sums + i * kColumns + 16 * v, tile[i][v]);
}

void multiplyNative(const Block &block, bool packsB, bool adds, const Workspace &workspace) {
  auto *a = reinterpret_cast<uint32_t *>(workspace.a()), *b = reinterpret_cast<uint32_t *>(workspace.b());
  packStrips(block.a(), block.stripA(), block.alongA(), block.rows, block.countK, kTileRows, a);
  if (packsB)
    packStrips(block.b(), block.stripB(), block.alongB(), block.columns, block.countK, kTileColumns, b);
  int64_t pairs = (block.countK + 1) / 2;
  for (int64_t j = 0; j < block.columns; j += kTileColumns)
    for (int64_t i = 0; i < block.rows; i += kTileRows)
      multiplyTile(a + i * pairs, b + j * pairs, pairs, adds, workspace.sums() + i * kColumns + j);
}

#endif

/// The sums of a block from C, or C from them.
SPMD_AVX2 void loadSums(const Block &block, float *sums) {
  for (int64_t i = 0; i < block.rows; ++i)
    for (int64_t j = 0; j < block.columns; ++j)
      sums[i * kColumns + j] = widen(block.p.c[(block.row + i) * block.p.ldc + block.column + j]);
}

SPMD_AVX2 void storeSums(const Block &block, const float *sums) {
  for (int64_t i = 0; i < block.rows; ++i)
    for (int64_t j = 0; j < block.columns; ++j)
      block.p.c[(block.row + i) * block.p.ldc + block.column + j] = BFloat16(sums[i * kColumns + j]).bits;
}

} // namespace

bool spmd::runtime::hasUnitBF16(UnitBF16 unit) {
  switch (unit) {
  case UnitBF16::AMX: {
    static const bool has = hasAMX();
    return has;
  }
  case UnitBF16::Native:
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
  case UnitBF16::F32:
    return true;
  }
  return false;
}

UnitBF16 spmd::runtime::getUnitBF16() {
  if (hasUnitBF16(UnitBF16::AMX))
    return UnitBF16::AMX;
#if defined(__x86_64__)
  // On an Intel core vdpbf16ps takes longer than the two multiply-adds of f32 that it stands for.
  if (hasUnitBF16(UnitBF16::Native) && !__builtin_cpu_is("intel"))
    return UnitBF16::Native;
#endif
  return UnitBF16::F32;
}

void spmd::runtime::prepareThreadBF16() {
  getWorkspace();
  UnitBF16 unit = getUnitBF16();
  if (unit == UnitBF16::AMX)
    prepareThreadAMX();
  else if (unit == UnitBF16::F32)
    prepareThreadF32();
}

void spmd::runtime::runGemmBF16(const GemmProblemBF16 &gemm, UnitBF16 unit) {
  if (gemm.k == 0 && !gemm.accumulate)
    for (int64_t i = 0; i < gemm.m; ++i)
      std::fill_n(gemm.c + i * gemm.ldc, gemm.n, uint16_t(0));
  if (gemm.m == 0 || gemm.n == 0 || gemm.k == 0)
    return;
  const Workspace &workspace = getWorkspace();
  if (unit == UnitBF16::AMX)
    return runGemmAMX(gemm, workspace.memory.get());
  int64_t blockK = unit == UnitBF16::Native ? kBlockK : kF32BlockK;
  for (int64_t column = 0; column < gemm.n; column += kColumns)
    for (int64_t row = 0; row < gemm.m; row += kRows) {
      Block block{gemm, row, std::min(kRows, gemm.m - row), column, std::min(kColumns, gemm.n - column), 0, 0};
      if (gemm.accumulate)
        loadSums(block, workspace.sums());
      for (; block.k < gemm.k; block.k += blockK) {
        block.countK = std::min(blockK, gemm.k - block.k);
        bool packsB = row == 0 || gemm.k > blockK, adds = gemm.accumulate || block.k > 0;
#if defined(__x86_64__)
        if (unit == UnitBF16::Native) {
          multiplyNative(block, packsB, adds, workspace);
          continue;
        }
#endif
        multiplyWidened(block, packsB, adds, workspace);
      }
      storeSums(block, workspace.sums());
    }
}
