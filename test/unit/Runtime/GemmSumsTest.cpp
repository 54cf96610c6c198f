//===- GemmSumsTest.cpp - sums of a matrix of a GEMM ----------------------===//

#include "spmd/Runtime/Host/Gemm.h"

#include <gtest/gtest.h>

using namespace spmd::runtime;

namespace {

/// Numbers that a sum of all of them, and each partial sum, has exactly in any of the types.
double numberAt(int64_t row, int64_t column) { return static_cast<double>((row * 3 + column * 5) % 7 - 3); }

/// op(A) is m x k, op(B) is k x n, and C, of whose columns the sums over m are wanted, counts as k x n; `isTransposed`
/// says how the summed one lies, whose rows are `ld` elements apart.
void expectSums(DType dtype, GemmOperand of, bool isTransposed, int64_t count, int64_t k, int64_t padding) {
  bool isOfA = of == GemmOperand::A, isOfC = of == GemmOperand::C;
  GemmCommand gemm;
  gemm.dtype = dtype;
  GemmShape &g = gemm.shape;
  g.m = isOfA ? count : isOfC ? k : 3, g.n = isOfA ? 3 : count, g.k = isOfC ? 2 : k;
  g.biasGradientOf = of;
  g.transA = g.transB = isTransposed;
  // Vectors of k elements lie in columns of A when it is transposed, of B when it is not.
  bool areColumns = isOfA == isTransposed;
  int64_t ld = (areColumns ? count : k) + padding;
  g.lda = g.ldb = g.ldc = ld;
  std::vector<double> matrix(static_cast<size_t>((areColumns ? k : count) * ld) * 2),
      sums(static_cast<size_t>(count) * 2);
  for (int64_t i = 0; i < static_cast<int64_t>(matrix.size()); ++i)
    storeFromDouble(matrix.data(), dtype, i / 2, 1000);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < k; ++j)
      storeFromDouble(matrix.data(), dtype, areColumns ? j * ld + i : i * ld + j, numberAt(i, j));
  auto data = [&](GemmOperand operand) -> const void * { return of == operand ? matrix.data() : nullptr; };
  runBiasGradient(gemm, data(GemmOperand::A), data(GemmOperand::B), data(GemmOperand::C), sums.data());
  for (int64_t i = 0; i < count; ++i) {
    double expected = 0;
    for (int64_t j = 0; j < k; ++j)
      expected += numberAt(i, j);
    ASSERT_EQ(loadAsDouble(sums.data(), dtype, i), expected) << nameOf(dtype) << " " << i;
  }
}

} // namespace

TEST(GemmSums, OfEachOperandAndType) {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (GemmOperand of : kGemmOperands)
      for (bool isTransposed : {false, true})
        for (int64_t padding : {0, 3})
          for (int64_t count : {1, 5, 600}) // more than are summed together
            if (of != GemmOperand::C || !isTransposed)
              expectSums(dtype, of, isTransposed, count, 9, padding);
}

/// Sums are in f32: in bf16, 256 + 1 is 256.
TEST(GemmSums, NarrowTypesAreSummedInF32) {
  for (int64_t k : {2, 600}) {
    GemmCommand gemm;
    gemm.dtype = DType::BF16;
    GemmShape &g = gemm.shape;
    g.m = g.n = g.lda = g.ldb = 1, g.k = k, g.transA = true;
    g.biasGradientOf = GemmOperand::A;
    std::vector<uint16_t> ones(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i)
      storeFromDouble(ones.data(), DType::BF16, i, 1);
    uint16_t sum = 0;
    runBiasGradient(gemm, ones.data(), nullptr, nullptr, &sum);
    EXPECT_EQ(loadAsDouble(&sum, DType::BF16, 0), static_cast<double>(k));
  }
}
