// [Note: GEMMs of f16] in GemmF16.h.

#include "lib/Runtime/Host/GemmF16.h"
#include "Guarded.h"
#include "TestSupport.h"
#include "lib/Runtime/Host/GemmF32.h"
#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <array>
#include <cmath>
#include <limits>

using namespace spmd::runtime;

namespace {
std::vector<Float16> numbers(int64_t count, uint32_t seed) {
  std::vector<Float16> values(static_cast<size_t>(count));
  for (Float16 &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = Float16(static_cast<float>(static_cast<int32_t>(seed)) / 2147483648.0f);
  }
  return values;
}

/// A product whose rows are longer than needed, and what C becomes.
struct Operands {
  Operands(int64_t m, int64_t n, int64_t k, bool transA, bool transB, bool accumulate) {
    p.m = m, p.n = n, p.k = k, p.transA = transA, p.transB = transB, p.accumulate = accumulate;
    p.lda = (transA ? m : k) + 3, p.ldb = (transB ? k : n) + 1, p.ldc = n + 2;
    a = numbers(p.lda * (transA ? k : m), 1);
    b = numbers(p.ldb * (transB ? n : k), 2);
    c = old = numbers(p.ldc * m, 3);
  }

  void run(bool atEnd = false) {
    Guarded<Float16> guardedA(a, atEnd), guardedB(b, atEnd), guardedC(c, atEnd);
    p.a = &guardedA.first->bits, p.b = &guardedB.first->bits, p.c = &guardedC.first->bits;
    runGemmF16(p);
    std::copy(guardedC.first, guardedC.first + c.size(), c.begin());
  }

  /// As the note defines it: one chain per block of k, the blocks added in order, one rounding.
  Float16 define(int64_t i, int64_t j) const {
    float sum = p.accumulate ? static_cast<float>(old[static_cast<size_t>(i * p.ldc + j)]) : 0;
    for (int64_t begin = 0; begin < p.k; begin += kF32BlockK) {
      float chain = 0;
      for (int64_t l = begin; l < std::min(begin + kF32BlockK, p.k); ++l)
        chain = std::fma(static_cast<float>(a[static_cast<size_t>(p.transA ? l * p.lda + i : i * p.lda + l)]),
                         static_cast<float>(b[static_cast<size_t>(p.transB ? j * p.ldb + l : l * p.ldb + j)]), chain);
      sum = begin > 0 || p.accumulate ? sum + chain : chain;
    }
    return Float16(sum);
  }

  /// Every `sample`th element, and that nothing was written between rows.
  void compare(int64_t sample = 1) const {
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.ldc; ++j) {
        auto at = static_cast<size_t>(i * p.ldc + j);
        if (j >= p.n)
          ASSERT_EQ(c[at].bits, old[at].bits) << "beside row " << i;
        else if ((i * p.ldc + j) % sample == 0)
          ASSERT_EQ(c[at].bits, define(i, j).bits)
              << p.m << "x" << p.n << "x" << p.k << " at " << i << ", " << j;
      }
  }

  GemmProblem<uint16_t> p;
  std::vector<Float16> a, b, c, old;
};
} // namespace

TEST(GemmF16, IsSummedInF32AndRoundedOnce) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 2}, {13, 33, 7}, {70, 40, 9}, {5, 17, 1051},
                         {250, 35, 5}, {20, 530, 3}})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool accumulate : {false, true}) {
          Operands operands(m, n, k, transA, transB, accumulate);
          operands.run(/*atEnd=*/accumulate);
          operands.compare();
        }
}

TEST(GemmF16, IsSummedBeyondBlocks) {
  for (bool transA : {false, true})
    for (bool transB : {false, true}) {
      Operands operands(490, 1060, 1100, transA, transB, transA);
      operands.run();
      operands.compare(197);
    }
}

TEST(GemmF16, OfNoKIsWhatIsAdded) {
  for (bool accumulate : {false, true}) {
    Operands operands(3, 40, 0, false, false, accumulate);
    operands.run();
    operands.compare();
  }
}

// Of 8 elements at a time and of single ones.
TEST(GemmF16, KeepsSubnormalNumbersAndOverflows) {
  Operands operands(3, 11, 2, false, false, false);
  std::fill(operands.b.begin(), operands.b.end(), Float16(1.0f));
  for (size_t l : {0u, 1u}) {
    operands.a[l] = Float16(0x1p-24f);
    operands.a[static_cast<size_t>(operands.p.lda) + l] = Float16(32752.0f);     // the sum is the largest number
    operands.a[static_cast<size_t>(2 * operands.p.lda) + l] = Float16(-32768.0f); // and this beyond it
  }
  operands.run();
  for (size_t j = 0; j < 11; ++j) {
    EXPECT_EQ(operands.c[j].bits, 2);
    EXPECT_EQ(static_cast<float>(operands.c[13 + j]), 65504.0f);
    EXPECT_EQ(static_cast<float>(operands.c[26 + j]), -std::numeric_limits<float>::infinity());
  }
}

namespace {
/// A batch of products as a command.
std::vector<Float16> runOnThreads(int64_t m, int64_t n, int64_t k, int64_t threads) {
  GemmCommand gemm;
  gemm.dtype = DType::F16;
  GemmShape &g = gemm.shape;
  g.m = m, g.n = n, g.k = k, g.transB = true, g.batch = 2, g.lda = k, g.ldb = k, g.ldc = n;
  g.strideA = m * k, g.strideB = k * n, g.strideC = m * n;
  std::vector<Float16> a = numbers(2 * g.strideA, 1), b = numbers(2 * g.strideB, 2);
  std::vector<Float16> c(static_cast<size_t>(2 * g.strideC));
  WorkerPool pool(threads, 50, "test");
  runGemm(gemm, a.data(), b.data(), c.data(), pool);
  return c;
}
} // namespace

TEST(GemmF16, BitsDoNotDependOnThreads) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{300, 90, 600}, {33, 400, 1060}}) {
    std::vector<Float16> first = runOnThreads(m, n, k, 1);
    for (int64_t threads : {2, 3, 5}) {
      std::vector<Float16> other = runOnThreads(m, n, k, threads);
      for (size_t i = 0; i < first.size(); ++i)
        ASSERT_EQ(other[i].bits, first[i].bits) << m << "x" << n << "x" << k << ", " << threads << " threads";
    }
  }
}
