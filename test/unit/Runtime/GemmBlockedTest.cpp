// [Note: GEMMs of f32] in GemmF32.h and [Note: GEMMs of f64] in GemmF64.h: every element against its definition,
// to the bit.

#include "Guarded.h"
#include "TestSupport.h"
#include "lib/Runtime/Host/GemmF32.h"
#include "lib/Runtime/Host/GemmF64.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace spmd::runtime;

namespace {
/// What the functions for an element are called.
template <typename Element>
struct Functions;
template <>
struct Functions<float> {
  static constexpr DType kType = DType::F32;
  static constexpr int64_t kBlockK = kF32BlockK;
  static constexpr auto kRun = runGemmF32;
};
template <>
struct Functions<double> {
  static constexpr DType kType = DType::F64;
  static constexpr int64_t kBlockK = kF64BlockK;
  static constexpr auto kRun = runGemmF64;
};

template <typename Element>
std::vector<Element> randomNumbers(int64_t count, uint32_t seed) {
  std::vector<Element> values(static_cast<size_t>(count));
  for (Element &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<Element>(static_cast<int32_t>(seed)) / Element(2147483648);
  }
  return values;
}

std::vector<VectorUnit> vectorUnits() {
  switch (getVectorUnit()) {
  case VectorUnit::AVX512:
    return {VectorUnit::AVX2, VectorUnit::AVX512};
  case VectorUnit::AVX2:
    return {VectorUnit::AVX2};
  case VectorUnit::None:
    return {};
  }
  return {};
}

std::vector<VectorUnit> allUnits() {
  std::vector<VectorUnit> units = vectorUnits();
  units.push_back(VectorUnit::None);
  return units;
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
template <typename Element>
struct Operands {
  static constexpr int64_t kBlockK = Functions<Element>::kBlockK;

  explicit Operands(const Case &test) : test(test) {
    p.m = test.m, p.n = test.n, p.k = test.k, p.transA = test.transA, p.transB = test.transB;
    p.lda = (test.transA ? test.m : test.k) + (test.isDense ? 0 : 3);
    p.ldb = (test.transB ? test.k : test.n) + (test.isDense ? 0 : 1);
    p.ldc = test.n + (test.isDense ? 0 : 2);
    p.epilogue.ldr = test.n + (test.isDense ? 0 : 5);
    p.columnPiece = test.columnPiece, p.columnPieces = 3;
    a = randomNumbers<Element>(p.lda * (test.transA ? test.k : test.m), 1);
    b = randomNumbers<Element>(p.ldb * (test.transB ? test.n : test.k), 2);
    c = old = randomNumbers<Element>(p.ldc * test.m, 3);
    bias = randomNumbers<Element>(test.n, 4);
    residual = randomNumbers<Element>(p.epilogue.ldr * test.m, 5);
    static Element place; // operands without k have an address in the arena, too
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
  Element define(int64_t i, int64_t j, long double &exact, long double &magnitude) const {
    auto at = [](const std::vector<Element> &v, int64_t index) { return v[static_cast<size_t>(index)]; };
    Element product = 0;
    exact = magnitude = 0;
    for (int64_t begin = 0; begin < p.k; begin += kBlockK) {
      Element sum = 0;
      for (int64_t l = begin; l < std::min(p.k, begin + kBlockK); ++l) {
        Element x = at(a, p.transA ? l * p.lda + i : i * p.lda + l);
        Element y = at(b, p.transB ? j * p.ldb + l : l * p.ldb + j);
        sum = std::fma(x, y, sum);
        exact += static_cast<long double>(x) * y;
        magnitude += std::fabs(static_cast<long double>(x) * y);
      }
      product = begin == 0 ? sum : product + sum;
    }
    auto add = [&](Element value) {
      product += value;
      exact += value;
      magnitude += std::fabs(static_cast<long double>(value));
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
  GemmWithEpilogue<Element> p;
  std::vector<Element> a, b, c, old, bias, residual;
};

/// Whether they are the same bits.
template <typename Element>
bool areSame(Element x, Element y) {
  return std::memcmp(&x, &y, sizeof x) == 0;
}

/// Compares C of the operands.
template <typename Element>
void compareWithDefinition(const Operands<Element> &operands, VectorUnit unit) {
  const Case &test = operands.test;
  const GemmWithEpilogue<Element> &p = operands.p;
  constexpr int64_t kBlockK = Functions<Element>::kBlockK;
  constexpr long double half = std::numeric_limits<Element>::epsilon() / 2;
  SCOPED_TRACE(std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + (p.transA ? " T" : " N") +
               (p.transB ? "T" : "N") + " adds " + std::to_string(static_cast<int>(test.adds)) + " unit " +
               std::to_string(static_cast<int>(unit)));
  int64_t element = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j, ++element) {
      if (element % test.sample != 0)
        continue;
      long double exact, magnitude;
      Element expected = operands.define(i, j, exact, magnitude);
      Element found = operands.c[static_cast<size_t>(i * p.ldc + j)];
      ASSERT_TRUE(areSame(found, expected)) << i << ", " << j << ": " << found << " instead of " << expected;
      // Every term meets at most one rounding per step of its block, per block and per addition.
      double roundings = double(std::min(p.k, kBlockK)) + double(p.k) / kBlockK + 2;
      ASSERT_LE(std::fabs(found - exact), roundings * half * magnitude * 1.01) << i << ", " << j;
    }
    for (int64_t j = p.n; j < p.ldc; ++j)
      ASSERT_EQ(operands.c[static_cast<size_t>(i * p.ldc + j)], operands.old[static_cast<size_t>(i * p.ldc + j)])
          << "wrote beside row " << i;
  }
}

template <typename Element>
void compareWithDefinition(const Case &test, VectorUnit unit) {
  Operands<Element> operands(test);
  Functions<Element>::kRun(operands.p, unit);
  compareWithDefinition(operands, unit);
}

const Adds kAllAdds[] = {Adds::Nothing, Adds::ToC, Adds::Bias, Adds::Residual, Adds::BiasAndResidual, Adds::BiasAndC};

template <typename Element>
class GemmBlocked : public testing::Test {};

struct ElementName {
  template <typename Element>
  static std::string GetName(int) {
    return sizeof(Element) == 4 ? "F32" : "F64";
  }
};
using ElementTypes = testing::Types<float, double>;
} // namespace

TYPED_TEST_SUITE(GemmBlocked, ElementTypes, ElementName);

TYPED_TEST(GemmBlocked, IsItsDefinitionAtEveryTileSize) {
  using Element = TypeParam;
  std::mt19937 engine(7);
  std::uniform_int_distribution<int64_t> extent(1, 70);
  for (VectorUnit unit : allUnits())
    for (int i = 0; i < 300; ++i)
      compareWithDefinition<Element>({i < 70 ? i + 1 : extent(engine), i < 70 ? 70 - i : extent(engine), extent(engine),
                                      i % 2 == 1, i / 2 % 2 == 1, kAllAdds[i % 6]},
                                     unit);
}

// Several groups and panels, with and without strips that are not full; and rows that lie at multiples of 4096 bytes.
TYPED_TEST(GemmBlocked, IsItsDefinitionWhereOperandsArePacked) {
  using Element = TypeParam;
  for (VectorUnit unit : allUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        compareWithDefinition<Element>({153, 397, 41, transA, transB, Adds::BiasAndResidual, 7}, unit);
        compareWithDefinition<Element>({9, 347, 37, transA, transB, Adds::ToC, 3}, unit);
        compareWithDefinition<Element>({161, 9, 35, transA, transB, Adds::Bias}, unit);
        compareWithDefinition<Element>({100, 343, 1021, transA, transB, Adds::Nothing, 31}, unit);
      }
}

// Beyond the blocks of k, the panel, the group of rows and the blocks of sums.
TYPED_TEST(GemmBlocked, IsItsDefinitionBeyondBlocks) {
  using Element = TypeParam;
  for (VectorUnit unit : vectorUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        for (Adds adds : kAllAdds) {
          compareWithDefinition<Element>({17, 35, 2 * Functions<Element>::kBlockK + 5, transA, transB, adds}, unit);
          compareWithDefinition<Element>({5, 40, Functions<Element>::kBlockK, transA, transB, adds}, unit);
        }
        compareWithDefinition<Element>({1100, 1057, 3, transA, transB, Adds::Nothing, 31}, unit);
        compareWithDefinition<Element>(
            {150, 1070, Functions<Element>::kBlockK + 2, transA, transB, Adds::Residual, 301}, unit);
        compareWithDefinition<Element>({1041, 140, Functions<Element>::kBlockK + 1, transA, transB, Adds::Bias, 301},
                                       unit);
        compareWithDefinition<Element>({620, 700, Functions<Element>::kBlockK + 3, transA, transB, Adds::ToC, 301},
                                       unit);
      }
}

TYPED_TEST(GemmBlocked, TouchesNothingBesideItsOperands) {
  using Element = TypeParam;
  for (VectorUnit unit : allUnits())
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool atEnd : {false, true})
          for (Adds adds : {Adds::Nothing, Adds::BiasAndResidual})
            for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                   {17, 33, 3},
                                   {29, 64, 5},
                                   {14, 31, 6},
                                   {100, 330, 37},
                                   {143, 65, 9},
                                   {6, 16, Functions<Element>::kBlockK + 3}}) {
              Operands<Element> operands({m, n, k, transA, transB, adds, m == 100 ? 7 : 1, 0, true});
              Guarded<Element> a(operands.a, atEnd), b(operands.b, atEnd), c(operands.c, atEnd);
              Guarded<Element> bias(operands.bias, atEnd), residual(operands.residual, atEnd);
              GemmWithEpilogue<Element> p = operands.p;
              p.a = a.first, p.b = b.first, p.c = c.first;
              if (adds == Adds::BiasAndResidual)
                p.epilogue.bias = bias.first, p.epilogue.residual = residual.first;
              Functions<Element>::kRun(p, unit);
              std::copy(c.first, c.first + m * n, operands.c.begin());
              compareWithDefinition<Element>(operands, unit);
            }
}

// Every element, where rows of A lie at multiples of 4096 bytes, and where groups of rows do not begin with the first.
TYPED_TEST(GemmBlocked, IsItsDefinitionWhereRowsAreCopiedOrTurned) {
  using Element = TypeParam;
  for (VectorUnit unit : vectorUnits()) {
    compareWithDefinition<Element>({30, 70, 1021, false, false, Adds::ToC}, unit);
    compareWithDefinition<Element>({30, 70, 1024, false, true, Adds::Bias, 1, 0, true}, unit);
    for (bool transA : {false, true})
      for (int64_t piece : {1, 2})
        compareWithDefinition<Element>(
            {300, 40, Functions<Element>::kBlockK + 3, transA, false, Adds::Residual, 7, piece}, unit);
    compareWithDefinition<Element>({300, 40, 20, false, true, Adds::Nothing, 1, 1}, unit);
  }
}

TYPED_TEST(GemmBlocked, OfNoKIsWhatIsAdded) {
  using Element = TypeParam;
  for (VectorUnit unit : allUnits())
    for (Adds adds : kAllAdds)
      compareWithDefinition<Element>({3, 40, 0, false, false, adds}, unit);
}

namespace {
/// A batch of products as a command. Only products of f32 have an epilogue there.
template <typename Element>
struct Batch {
  Batch(int64_t m, int64_t n, int64_t k, int64_t count, bool trans, bool accumulate) {
    gemm.dtype = Functions<Element>::kType;
    GemmShape &g = gemm.shape;
    g.m = m, g.n = n, g.k = k, g.batch = count, g.beta = accumulate ? 1 : 0, g.transA = g.transB = trans;
    g.lda = trans ? m : k, g.ldb = trans ? k : n, g.ldc = n;
    g.strideA = m * k, g.strideB = k * n, g.strideC = m * n;
    a = randomNumbers<Element>(g.strideA * count, 1), b = randomNumbers<Element>(g.strideB * count, 2),
    c = randomNumbers<Element>(g.strideC * count, 3);
    bias = randomNumbers<Element>(n, 4), residual = randomNumbers<Element>(g.strideC * count, 5);
    if constexpr (std::is_same_v<Element, float>)
      if (!accumulate)
        epilogue = {bias.data(), residual.data(), n, g.strideC};
  }
  std::vector<Element> run(int64_t threads) const {
    WorkerPool pool(threads, 50, "test");
    std::vector<Element> result = c;
    runGemm(gemm, a.data(), b.data(), result.data(), epilogue, pool);
    return result;
  }
  GemmCommand gemm;
  std::vector<Element> a, b, c, bias, residual;
  Epilogue epilogue;
};
} // namespace

TYPED_TEST(GemmBlocked, BitsDoNotDependOnThreads) {
  using Element = TypeParam;
  for (bool trans : {false, true})
    for (bool accumulate : {false, true})
      for (auto [m, n, k, count] : {std::array<int64_t, 4>{130, 150, 70, 1},
                                    {301, 40, 600, 1},
                                    {40, 301, 1100, 2},
                                    {260, 420, 300, 1},
                                    {90, 650, 530, 1},
                                    {33, 65, 100, 7},
                                    {1, 3000, 64, 1},
                                    {3000, 1, 64, 1}}) {
        Batch<Element> batch(m, n, k, count, trans, accumulate);
        std::vector<Element> first = batch.run(1);
        for (int64_t threads : {2, 3, 4})
          EXPECT_EQ(batch.run(threads), first) << m << "x" << n << "x" << k << ", " << threads << " threads";
      }
}

TYPED_TEST(GemmBlocked, ProductsOfABatchAreThoseAlone) {
  using Element = TypeParam;
  Batch<Element> batch(45, 70, 33, 5, false, false);
  std::vector<Element> together = batch.run(2);
  const GemmShape &g = batch.gemm.shape;
  for (int64_t i = 0; i < g.batch; ++i) {
    std::vector<Element> alone(static_cast<size_t>(g.strideC));
    GemmWithEpilogue<Element> p{{g.m, g.n, g.k, &batch.a[static_cast<size_t>(i * g.strideA)],
                                 &batch.b[static_cast<size_t>(i * g.strideB)], alone.data(), g.lda, g.ldb, g.ldc}};
    if constexpr (std::is_same_v<Element, float>)
      p.epilogue = {batch.bias.data(), &batch.residual[static_cast<size_t>(i * g.strideC)], g.n, 0};
    Functions<Element>::kRun(p, getVectorUnit());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * g.strideC)) << "product " << i;
  }
}
