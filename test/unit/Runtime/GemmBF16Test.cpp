// [Note: GEMMs of bf16] in GemmBF16.h.

#include "lib/Runtime/Host/GemmBF16.h"
#include "Guarded.h"
#include "TestSupport.h"
#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace spmd::runtime;

namespace {
/// Numbers of 8 bits of fraction in [-1, 1].
std::vector<BFloat16> narrowNumbers(int64_t count, uint32_t seed) {
  std::vector<BFloat16> values(static_cast<size_t>(count));
  for (BFloat16 &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = BFloat16(static_cast<float>(static_cast<int32_t>(seed)) / 2147483648.0f);
  }
  return values;
}

struct Case {
  int64_t m, n, k;
  bool transA, transB, accumulate;
  int64_t sample = 1;   ///< of so many elements one is compared
  bool isDense = false; ///< rows are no longer than needed
};

/// The operands of a product, and what C becomes.
struct Operands {
  explicit Operands(const Case &test) : test(test) {
    p.m = test.m, p.n = test.n, p.k = test.k, p.transA = test.transA, p.transB = test.transB;
    p.accumulate = test.accumulate;
    p.lda = (test.transA ? test.m : test.k) + (test.isDense ? 0 : 3);
    p.ldb = (test.transB ? test.k : test.n) + (test.isDense ? 0 : 1);
    p.ldc = test.n + (test.isDense ? 0 : 2);
    a = narrowNumbers(p.lda * (test.transA ? test.k : test.m), 1);
    b = narrowNumbers(p.ldb * (test.transB ? test.n : test.k), 2);
    c = old = narrowNumbers(p.ldc * test.m, 3);
    spoilBeside(a, p.lda, test.transA ? test.m : test.k);
    spoilBeside(b, p.ldb, test.transB ? test.k : test.n);
  }

  void run(UnitBF16 unit, bool atEnd = false) {
    Guarded<BFloat16> guardedA(a, atEnd), guardedB(b, atEnd), guardedC(c, atEnd);
    p.a = &guardedA.first->bits, p.b = &guardedB.first->bits, p.c = &guardedC.first->bits;
    runGemmBF16(p, unit);
    std::copy(guardedC.first, guardedC.first + c.size(), c.begin());
  }

  float atA(int64_t i, int64_t l) const {
    return static_cast<float>(a[static_cast<size_t>(p.transA ? l * p.lda + i : i * p.lda + l)]);
  }
  float atB(int64_t l, int64_t j) const {
    return static_cast<float>(b[static_cast<size_t>(p.transB ? j * p.ldb + l : l * p.ldb + j)]);
  }
  float atOld(int64_t i, int64_t j) const { return static_cast<float>(old[static_cast<size_t>(i * p.ldc + j)]); }

  /// As the note defines it for AMX.
  BFloat16 defineAMX(int64_t i, int64_t j) const {
    float sum = p.accumulate ? atOld(i, j) : 0;
    for (int64_t begin = 0; begin < p.k; begin += 32) {
      float chains[2] = {0, 0};
      for (int64_t l = begin; l < std::min(begin + 32, p.k); ++l)
        chains[l % 2] = std::fma(atA(i, l), atB(l, j), chains[l % 2]);
      sum += chains[0] + chains[1];
    }
    return BFloat16(sum);
  }

  /// Compares with sums in double that are rounded once: a sum in f32 differs by rounding errors of f32, which may move
  /// it across one rounding of bf16.
  void compareWithExact(int64_t i, int64_t j, double found) const {
    double sum = p.accumulate ? atOld(i, j) : 0, magnitude = std::fabs(sum);
    for (int64_t l = 0; l < p.k; ++l) {
      double term = double(atA(i, l)) * atB(l, j);
      sum += term;
      magnitude += std::fabs(term);
    }
    double tolerance = std::fabs(sum) * 0x1p-8 + magnitude * 0x1p-23 * std::sqrt(static_cast<double>(p.k));
    ASSERT_LE(std::fabs(found - sum), tolerance) << i << ", " << j;
  }

  void compare(UnitBF16 unit) const {
    SCOPED_TRACE(std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
                 (p.transA ? " T" : " N") + (p.transB ? "T" : "N") + (p.accumulate ? " adds" : "") + " unit " +
                 std::to_string(static_cast<int>(unit)));
    int64_t element = 0;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j, ++element) {
        if (element % test.sample != 0)
          continue;
        BFloat16 found = c[static_cast<size_t>(i * p.ldc + j)];
        if (unit == UnitBF16::AMX) {
          ASSERT_EQ(found.bits, defineAMX(i, j).bits) << i << ", " << j << ": " << static_cast<float>(found);
        }
        compareWithExact(i, j, static_cast<float>(found));
      }
      for (int64_t j = p.n; j < p.ldc; ++j)
        ASSERT_EQ(c[static_cast<size_t>(i * p.ldc + j)].bits, old[static_cast<size_t>(i * p.ldc + j)].bits)
            << "wrote beside row " << i;
    }
  }

  /// What lies beside rows must not be read, or at least not matter.
  static void spoilBeside(std::vector<BFloat16> &values, int64_t ld, int64_t columns) {
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % ld >= columns)
        values[i] = BFloat16(std::numeric_limits<float>::quiet_NaN());
  }

  Case test;
  GemmProblemBF16 p;
  std::vector<BFloat16> a, b, c, old;
};

void runAndCompare(const Case &test, UnitBF16 unit, bool atEnd = false) {
  Operands operands(test);
  operands.run(unit, atEnd);
  operands.compare(unit);
}

/// Where a processor lacks a unit, its tests are skipped.
class GemmBF16 : public testing::TestWithParam<UnitBF16> {
protected:
  void SetUp() override {
    if (!hasUnitBF16(GetParam()))
      GTEST_SKIP() << "this machine does not have the unit";
  }
};

std::string unitName(const testing::TestParamInfo<UnitBF16> &info) {
  return info.param == UnitBF16::AMX ? "AMX" : info.param == UnitBF16::Native ? "AVX512BF16" : "Widened";
}
} // namespace

INSTANTIATE_TEST_SUITE_P(Units, GemmBF16, testing::Values(UnitBF16::AMX, UnitBF16::Native, UnitBF16::F32), unitName);

// Sizes around the tiles, with rows that lie anywhere.
TEST_P(GemmBF16, IsSummedInF32AndRoundedOnce) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 2}, {12, 32, 64}, {13, 33, 7}, {70, 40, 9},
                         {250, 35, 5}, {20, 520, 3}, {5, 17, 2051}, {33, 64, 33}, {64, 31, 96}, {64, 40, 61}})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool accumulate : {false, true})
          runAndCompare({m, n, k, transA, transB, accumulate}, GetParam());
}

TEST_P(GemmBF16, IsSummedAtRandomSizes) {
  std::mt19937 engine(7);
  std::uniform_int_distribution<int64_t> extent(1, 140);
  for (int i = 0; i < 80; ++i)
    runAndCompare({extent(engine), extent(engine), extent(engine), i % 2 == 1, i / 2 % 2 == 1, i / 4 % 2 == 1},
                  GetParam());
}

// Beyond the blocks of each dim: more columns, rows whose sums are kept between two blocks of k, larger k
// than a strip has; dense, so that rows of A lie as tiles want them, and not.
TEST_P(GemmBF16, IsSummedBeyondBlocks) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 1060, 32}, {300, 34, 96}, {160, 65, 800}, {96, 400, 1056},
                         {550, 790, 1100}, {1060, 390, 1060}, {130, 33, 2112}})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool isDense : {false, true})
          runAndCompare({m, n, k, transA, transB, isDense != transA, 197, isDense}, GetParam());
}

// Operands end where their pages do, or begin there.
TEST_P(GemmBF16, TouchesNothingBesideItsOperands) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 33, 3}, {29, 64, 5}, {32, 32, 32}, {45, 31, 64},
                         {143, 65, 96}, {6, 16, 515}, {200, 50, 31}})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool atEnd : {false, true})
          runAndCompare({m, n, k, transA, transB, true, 3, true}, GetParam(), atEnd);
}

TEST_P(GemmBF16, OfNoKIsWhatIsAdded) {
  for (bool accumulate : {false, true}) {
    Operands operands({3, 40, 0, false, false, accumulate});
    operands.run(GetParam());
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 40; ++j)
        EXPECT_EQ(static_cast<float>(operands.c[static_cast<size_t>(i * 42 + j)]),
                  accumulate ? operands.atOld(i, j) : 0.0f);
  }
}

// What is filled up beyond k does not make NaNs of infinite factors, nor do they spread.
TEST_P(GemmBF16, InfinityStaysInItsElements) {
  for (bool transA : {false, true})
    for (bool transB : {false, true}) {
      Operands operands({40, 50, 33, transA, transB, false});
      operands.a[static_cast<size_t>(transA ? 32 * operands.p.lda + 7 : 7 * operands.p.lda + 32)] =
          BFloat16(std::numeric_limits<float>::infinity());
      operands.run(GetParam());
      for (int64_t i = 0; i < 40; ++i)
        for (int64_t j = 0; j < 50; ++j) {
          auto found = static_cast<float>(operands.c[static_cast<size_t>(i * operands.p.ldc + j)]);
          if (i == 7)
            EXPECT_EQ(found, std::copysign(std::numeric_limits<float>::infinity(), operands.atB(32, j)));
          else
            EXPECT_TRUE(std::isfinite(found)) << i << ", " << j;
        }
    }
}

// Widened products keep them.
TEST_P(GemmBF16, SubnormalFactorsCountAsZero) {
  Operands operands({2, 2, 4, false, true, false});
  for (BFloat16 &value : operands.a)
    value = BFloat16(0x1p-130f);
  for (BFloat16 &value : operands.b)
    value = BFloat16(0x1p20f);
  operands.run(GetParam());
  EXPECT_EQ(static_cast<float>(operands.c[0]), GetParam() == UnitBF16::F32 ? 0x1p-108f : 0);
}

namespace {
/// A batch of products as a command, with the unit of this machine.
std::vector<uint16_t> runOnThreads(int64_t m, int64_t n, int64_t k, bool transA, bool transB, int64_t threads) {
  GemmCommand gemm;
  gemm.dtype = DType::BF16;
  GemmShape &g = gemm.shape;
  g.m = m, g.n = n, g.k = k, g.transA = transA, g.transB = transB, g.batch = 2;
  g.lda = transA ? m : k, g.ldb = transB ? k : n, g.ldc = n;
  g.strideA = m * k, g.strideB = k * n, g.strideC = m * n;
  std::vector<BFloat16> a = narrowNumbers(2 * g.strideA, 1), b = narrowNumbers(2 * g.strideB, 2);
  std::vector<uint16_t> c(static_cast<size_t>(2 * g.strideC));
  WorkerPool pool(threads, 50, "test");
  runGemm(gemm, a.data(), b.data(), c.data(), pool);
  return c;
}
} // namespace

TEST(Gemm, BF16BitsDoNotDependOnThreads) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{130, 150, 70}, {300, 90, 1100}, {90, 300, 64}, {33, 400, 1060}})
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        std::vector<uint16_t> first = runOnThreads(m, n, k, transA, transB, 1);
        for (int64_t threads : {2, 3, 5})
          EXPECT_EQ(runOnThreads(m, n, k, transA, transB, threads), first)
              << m << "x" << n << "x" << k << ", " << threads << " threads";
      }
}

// However a product is cut.
TEST_P(GemmBF16, PiecesHaveTheBitsOfTheWhole) {
  Operands whole({150, 170, 1100, false, true, true, 1, true}), pieces = whole;
  whole.run(GetParam());
  GemmProblemBF16 p = pieces.p;
  for (auto [row, rows] : {std::array<int64_t, 2>{0, 19}, {19, 64}, {83, 67}})
    for (auto [column, columns] : {std::array<int64_t, 2>{0, 101}, {101, 69}}) {
      p.m = rows, p.n = columns;
      p.a = &pieces.a[static_cast<size_t>(row * p.lda)].bits;
      p.b = &pieces.b[static_cast<size_t>(column * p.ldb)].bits;
      p.c = &pieces.c[static_cast<size_t>(row * p.ldc + column)].bits;
      runGemmBF16(p, GetParam());
    }
  for (size_t i = 0; i < whole.c.size(); ++i)
    ASSERT_EQ(pieces.c[i].bits, whole.c[i].bits) << i;
}
