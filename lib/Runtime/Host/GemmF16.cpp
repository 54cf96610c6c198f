//===- GemmF16.cpp --------------------------------------------------------===//

#include "GemmF16.h"
#include "GemmF32.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"
#include "spmd/Runtime/Core/HalfFloat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__x86_64__)
#include <immintrin.h>
// Kernels of artifacts need x86-64-v3 anyway, which has it.
#define SPMD_F16C __attribute__((target("avx2,f16c")))
#else
#define SPMD_F16C
#endif

using namespace spmd::runtime;

namespace {

// Blocks of C of kRows x kColumns are summed over one block of GEMMs of f32 at a time.
constexpr int64_t kRows = 240, kColumns = 512, kBlockK = kF32BlockK;
static_assert(kF16WorkspaceBytes == (kRows + kColumns) * kBlockK * 4 + kRows * kColumns * 4);

/// The blocks of one thread.
struct Workspace {
  Workspace() : memory(static_cast<float *>(std::aligned_alloc(64, kF16WorkspaceBytes)), std::free) {
    std::memset(memory.get(), 0, kF16WorkspaceBytes); // takes the pages now
  }
  float *a() const { return memory.get(); }
  float *b() const { return a() + kRows * kBlockK; }
  float *sums() const { return b() + kColumns * kBlockK; }

  std::unique_ptr<float, void (*)(void *)> memory;
};

const Workspace &getWorkspace() {
  thread_local Workspace workspace;
  return workspace;
}

/// Rows of `columns` elements as f32, those of `to` being `ldTo` apart.
SPMD_F16C void widenRows(const uint16_t *from, int64_t ld, int64_t rows, int64_t columns, float *to, int64_t ldTo) {
  for (int64_t i = 0; i < rows; ++i, from += ld, to += ldTo) {
    int64_t j = 0;
#if defined(__x86_64__)
    for (; j + 8 <= columns; j += 8)
      _mm256_storeu_ps(to + j, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + j))));
#endif
    for (; j < columns; ++j) {
      Float16 value;
      value.bits = from[j];
      to[j] = static_cast<float>(value);
    }
  }
}

SPMD_F16C void roundRows(const float *from, int64_t ldFrom, int64_t rows, int64_t columns, uint16_t *to, int64_t ld) {
  for (int64_t i = 0; i < rows; ++i, from += ldFrom, to += ld) {
    int64_t j = 0;
#if defined(__x86_64__)
    for (; j + 8 <= columns; j += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(to + j),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + j), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; j < columns; ++j)
      to[j] = Float16(from[j]).bits;
  }
}

} // namespace

void spmd::runtime::prepareThreadF16() {
  getWorkspace();
  prepareThreadF32();
}

void spmd::runtime::runGemmF16(const GemmProblemF16 &p) {
  if (p.k == 0 && !p.accumulate)
    for (int64_t i = 0; i < p.m; ++i)
      std::fill_n(p.c + i * p.ldc, p.n, uint16_t(0));
  if (p.m == 0 || p.n == 0 || p.k == 0)
    return;
  const Workspace &workspace = getWorkspace();
  static const VectorUnit unit = getVectorUnit();
  for (int64_t column = 0; column < p.n; column += kColumns)
    for (int64_t row = 0; row < p.m; row += kRows) {
      int64_t rows = std::min(kRows, p.m - row), columns = std::min(kColumns, p.n - column);
      uint16_t *c = p.c + row * p.ldc + column;
      if (p.accumulate)
        widenRows(c, p.ldc, rows, columns, workspace.sums(), kColumns);
      for (int64_t k = 0; k < p.k; k += kBlockK) {
        int64_t countK = std::min(kBlockK, p.k - k);
        int64_t lda = p.transA ? rows : countK, ldb = p.transB ? countK : columns;
        widenRows(p.a + (p.transA ? k * p.lda + row : row * p.lda + k), p.lda, p.transA ? countK : rows, lda,
                  workspace.a(), lda);
        if (row == 0 || p.k > kBlockK)
          widenRows(p.b + (p.transB ? column * p.ldb + k : k * p.ldb + column), p.ldb, p.transB ? columns : countK, ldb,
                    workspace.b(), ldb);
        runGemmF32({{rows, columns, countK, workspace.a(), workspace.b(), workspace.sums(), lda, ldb, kColumns,
                     p.transA, p.transB, p.accumulate || k > 0}},
                   unit);
      }
      roundRows(workspace.sums(), kColumns, rows, columns, c, p.ldc);
    }
}
