// [Note: products of f32] in GemmF32.h: every element against its definition, to the bit.

#include "spmd/Runtime/Host/GemmF32.h"
#include "Guarded.h"
#include "TestSupport.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace spmd::runtime;

namespace {
std::vector<float> randomNumbers(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(seed)) / 2147483648.0f;
  }
  return values;
}

std::vector<UnitF32> vectorUnits() {
  switch (getUnitF32()) {
  case UnitF32::AVX512:
    return {UnitF32::AVX2, UnitF32::AVX512};
  case UnitF32::AVX2:
    return {UnitF32::AVX2};
  case UnitF32::Blas:
    return {};
  }
  return {};
}

enum class Adds { Nothing, ToC, Bias, Residual, BiasAndResidual, BiasAndC };

struct Case {
  int64_t m, n, k;
  bool transA, transB;
  Adds adds;
  int64_t sample = 1;      ///< of so many elements one is compared
  int64_t columnPiece = 0; ///< of three
  bool isDense = false;    ///< rows are no longer than needed
};

/// The operands of a product, and what C becomes.
struct Operands {
  explicit Operands(const Case &test) : test(test) {
    p.m = test.m, p.n = test.n, p.k = test.k, p.transA = test.transA, p.transB = test.transB;
    p.lda = (test.transA ? test.m : test.k) + (test.isDense ? 0 : 3);
    p.ldb = (test.transB ? test.k : test.n) + (test.isDense ? 0 : 1);
    p.ldc = test.n + (test.isDense ? 0 : 2);
    p.epilogue.ldr = test.n + (test.isDense ? 0 : 5);
    p.columnPiece = test.columnPiece, p.columnPieces = 3;
    a = randomNumbers(p.lda * (test.transA ? test.k : test.m), 1);
    b = randomNumbers(p.ldb * (test.transB ? test.n : test.k), 2);
    c = old = randomNumbers(p.ldc * test.m, 3);
    bias = randomNumbers(test.n, 4);
    residual = randomNumbers(p.epilogue.ldr * test.m, 5);
    static float place; // operands without depth have an address in the arena, too
    p.a = a.empty() ? &place : a.data(), p.b = b.empty() ? &place : b.data(), p.c = c.data();
    Adds adds = test.adds;
    p.accumulate = adds == Adds::ToC;
    if (adds == Adds::Bias || adds == Adds::BiasAndResidual || adds == Adds::BiasAndC)
      p.epilogue.bias = bias.data();
    if (adds == Adds::Residual || adds == Adds::BiasAndResidual)
      p.epilogue.residual = residual.data();
    if (adds == Adds::BiasAndC)
      p.epilogue.residual = c.data(), p.epilogue.ldr = p.ldc;
  }

  /// Element (i, j) as the note defines it, and the same without rounding.
  float define(int64_t i, int64_t j, double &exact, double &magnitude) const {
    auto at = [](const std::vector<float> &v, int64_t index) { return v[static_cast<size_t>(index)]; };
    float product = 0;
    exact = magnitude = 0;
    for (int64_t begin = 0; begin < p.k; begin += kF32BlockDepth) {
      float sum = 0;
      for (int64_t l = begin; l < std::min(p.k, begin + kF32BlockDepth); ++l) {
        float x = at(a, p.transA ? l * p.lda + i : i * p.lda + l), y = at(b, p.transB ? j * p.ldb + l : l * p.ldb + j);
        sum = std::fma(x, y, sum);
        exact += double(x) * y;
        magnitude += std::fabs(double(x) * y);
      }
      product = begin == 0 ? sum : product + sum;
    }
    auto add = [&](float value) {
      product += value;
      exact += value;
      magnitude += std::fabs(value);
    };
    if (p.epilogue.bias)
      add(bias[static_cast<size_t>(j)]);
    if (p.accumulate || test.adds == Adds::BiasAndC)
      add(at(old, i * p.ldc + j));
    else if (p.epilogue.residual)
      add(at(residual, i * p.epilogue.ldr + j));
    return product;
  }

  Case test;
  ProductF32 p;
  std::vector<float> a, b, c, old, bias, residual;
};

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Compares C of the operands.
void compareWithDefinition(const Operands &operands, UnitF32 unit) {
  const Case &test = operands.test;
  const ProductF32 &p = operands.p;
  SCOPED_TRACE(std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + (p.transA ? " T" : " N") +
               (p.transB ? "T" : "N") + " adds " + std::to_string(static_cast<int>(test.adds)) + " unit " +
               std::to_string(static_cast<int>(unit)));
  int64_t element = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j, ++element) {
      if (element % test.sample != 0)
        continue;
      double exact, magnitude;
      float expected = operands.define(i, j, exact, magnitude);
      float found = operands.c[static_cast<size_t>(i * p.ldc + j)];
      ASSERT_EQ(bitsOf(found), bitsOf(expected)) << i << ", " << j << ": " << found << " instead of " << expected;
      // Every term meets at most one rounding per step of its block, per block and per addition.
      double roundings = double(std::min(p.k, kF32BlockDepth)) + double(p.k) / kF32BlockDepth + 2;
      ASSERT_LE(std::fabs(found - exact), roundings * 0x1p-24 * magnitude * 1.01) << i << ", " << j;
    }
    for (int64_t j = p.n; j < p.ldc; ++j)
      ASSERT_EQ(operands.c[static_cast<size_t>(i * p.ldc + j)], operands.old[static_cast<size_t>(i * p.ldc + j)])
          << "wrote beside row " << i;
  }
}

void compareWithDefinition(const Case &test, UnitF32 unit) {
  Operands operands(test);
  runProductF32(operands.p, unit);
  compareWithDefinition(operands, unit);
}

const Adds kAllAdds[] = {Adds::Nothing,  Adds::ToC,           Adds::Bias,
                         Adds::Residual, Adds::BiasAndResidual, Adds::BiasAndC};
} // namespace

TEST(GemmF32, IsItsDefinitionAtEveryTileSize) {
  std::mt19937 engine(7);
  std::uniform_int_distribution<int64_t> extent(1, 70);
  for (UnitF32 unit : vectorUnits())
    for (int i = 0; i < 300; ++i)
      compareWithDefinition({i < 70 ? i + 1 : extent(engine), i < 70 ? 70 - i : extent(engine), extent(engine),
                             i % 2 == 1, i / 2 % 2 == 1, kAllAdds[i % 6]},
                            unit);
}

// Several groups and panels, with and without strips that are not full; and rows that lie at multiples of 4096 bytes.
TEST(GemmF32, IsItsDefinitionWhereOperandsArePacked) {
  for (UnitF32 unit : vectorUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        compareWithDefinition({153, 397, 41, transA, transB, Adds::BiasAndResidual, 7}, unit);
        compareWithDefinition({9, 347, 37, transA, transB, Adds::ToC, 3}, unit);
        compareWithDefinition({161, 9, 35, transA, transB, Adds::Bias}, unit);
        compareWithDefinition({100, 343, 1021, transA, transB, Adds::Nothing, 31}, unit);
      }
}

// Beyond the blocks of the depth, the panel, the group of rows and the blocks of sums.
TEST(GemmF32, IsItsDefinitionBeyondBlocks) {
  for (UnitF32 unit : vectorUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        for (Adds adds : kAllAdds) {
          compareWithDefinition({17, 35, 2 * kF32BlockDepth + 5, transA, transB, adds}, unit);
          compareWithDefinition({5, 40, kF32BlockDepth, transA, transB, adds}, unit);
        }
        compareWithDefinition({1100, 1057, 3, transA, transB, Adds::Nothing, 31}, unit);
        compareWithDefinition({150, 1070, kF32BlockDepth + 2, transA, transB, Adds::Residual, 301}, unit);
        compareWithDefinition({1041, 140, kF32BlockDepth + 1, transA, transB, Adds::Bias, 301}, unit);
        compareWithDefinition({620, 700, kF32BlockDepth + 3, transA, transB, Adds::ToC, 301}, unit);
      }
}

TEST(GemmF32, TouchesNothingBesideItsOperands) {
  for (UnitF32 unit : vectorUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool atEnd : {false, true})
          for (Adds adds : {Adds::Nothing, Adds::BiasAndResidual})
            for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 33, 3}, {29, 64, 5}, {14, 31, 6},
                                   {100, 330, 37}, {143, 65, 9}, {6, 16, 515}}) {
              Operands operands({m, n, k, transA, transB, adds, m == 100 ? 7 : 1, 0, true});
              Guarded<float> a(operands.a, atEnd), b(operands.b, atEnd), c(operands.c, atEnd);
              Guarded<float> bias(operands.bias, atEnd), residual(operands.residual, atEnd);
              ProductF32 p = operands.p;
              p.a = a.first, p.b = b.first, p.c = c.first;
              if (adds == Adds::BiasAndResidual)
                p.epilogue.bias = bias.first, p.epilogue.residual = residual.first;
              runProductF32(p, unit);
              std::copy(c.first, c.first + m * n, operands.c.begin());
              compareWithDefinition(operands, unit);
            }
}

// Every element, where rows of A lie at multiples of 4096 bytes, and where groups of rows do not begin with the first.
TEST(GemmF32, IsItsDefinitionWhereRowsAreCopiedOrTurned) {
  for (UnitF32 unit : vectorUnits()) {
    compareWithDefinition({30, 70, 1021, false, false, Adds::ToC}, unit);
    compareWithDefinition({30, 70, 1024, false, true, Adds::Bias, 1, 0, true}, unit);
    for (bool transA : {false, true})
      for (int64_t piece : {1, 2})
        compareWithDefinition({300, 40, kF32BlockDepth + 3, transA, false, Adds::Residual, 7, piece}, unit);
    compareWithDefinition({300, 40, 20, false, true, Adds::Nothing, 1, 1}, unit);
  }
}

TEST(GemmF32, OfNoDepthIsWhatIsAdded) {
  for (UnitF32 unit : vectorUnits())
    for (Adds adds : kAllAdds)
      compareWithDefinition({3, 40, 0, false, false, adds}, unit);
}

TEST(GemmF32, BlasAddsTheEpilogue) {
  for (Adds adds : kAllAdds) {
    Operands operands({9, 13, 20, false, true, adds});
    const ProductF32 &p = operands.p;
    runProductF32(p, UnitF32::Blas);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double exact, magnitude;
        operands.define(i, j, exact, magnitude);
        ASSERT_LE(std::fabs(operands.c[static_cast<size_t>(i * p.ldc + j)] - exact), 23 * 0x1p-24 * magnitude);
      }
  }
}

namespace {
/// A batch of products as a command.
struct Batch {
  Batch(int64_t m, int64_t n, int64_t k, int64_t count, bool trans, bool accumulate) {
    gemm.dtype = DType::F32;
    GemmShape &g = gemm.shape;
    g.m = m, g.n = n, g.k = k, g.batch = count, g.beta = accumulate ? 1 : 0, g.transA = g.transB = trans;
    g.lda = trans ? m : k, g.ldb = trans ? k : n, g.ldc = n;
    g.strideA = m * k, g.strideB = k * n, g.strideC = m * n;
    a = randomNumbers(g.strideA * count, 1), b = randomNumbers(g.strideB * count, 2),
    c = randomNumbers(g.strideC * count, 3);
    bias = randomNumbers(n, 4), residual = randomNumbers(g.strideC * count, 5);
    if (!accumulate)
      epilogue = {bias.data(), residual.data(), n, g.strideC};
  }
  std::vector<float> run(int64_t threads) const {
    WorkerPool pool(threads, 50, "test");
    std::vector<float> result = c;
    runGemm(gemm, a.data(), b.data(), result.data(), epilogue, pool);
    return result;
  }
  GemmCommand gemm;
  std::vector<float> a, b, c, bias, residual;
  Epilogue epilogue;
};
} // namespace

TEST(GemmF32, BitsDoNotDependOnThreads) {
  if (vectorUnits().empty())
    GTEST_SKIP() << "products are OpenBLAS's";
  for (bool trans : {false, true})
    for (bool accumulate : {false, true})
      for (auto [m, n, k, count] : {std::array<int64_t, 4>{130, 150, 70, 1}, {301, 40, 600, 1}, {40, 301, 1100, 2},
                                    {260, 420, 300, 1}, {90, 650, 530, 1},
                                    {33, 65, 100, 7}, {1, 3000, 64, 1}, {3000, 1, 64, 1}}) {
        Batch batch(m, n, k, count, trans, accumulate);
        std::vector<float> first = batch.run(1);
        for (int64_t threads : {2, 3, 4})
          EXPECT_EQ(batch.run(threads), first) << m << "x" << n << "x" << k << ", " << threads << " threads";
      }
}

TEST(GemmF32, ProductsOfABatchAreThoseAlone) {
  Batch batch(45, 70, 33, 5, false, false);
  std::vector<float> together = batch.run(2);
  const GemmShape &g = batch.gemm.shape;
  for (int64_t i = 0; i < g.batch; ++i) {
    std::vector<float> alone(static_cast<size_t>(g.strideC));
    ProductF32 p{{g.m, g.n, g.k, &batch.a[static_cast<size_t>(i * g.strideA)],
                  &batch.b[static_cast<size_t>(i * g.strideB)], alone.data(), g.lda, g.ldb, g.ldc},
                 {batch.bias.data(), &batch.residual[static_cast<size_t>(i * g.strideC)], g.n, 0}};
    runProductF32(p, getUnitF32());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * g.strideC)) << "product " << i;
  }
}
