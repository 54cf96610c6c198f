//===- GemmGeluBackwardTest.cpp - GEMMs times the derivative of gelu ------===//

#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace spmd::runtime;

namespace {

/// d/dx x (1 + tanh u) / 2 where u = sqrt(2 / pi) (x + 0.044715 x^3)
double derivative(double x) {
  double scale = std::sqrt(2 / M_PI), tanh = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + tanh + x * (1 - tanh * tanh) * scale * (1 + 3 * 0.044715 * x * x));
}

/// A GEMM of numbers whose sums are exact in f32, but not in narrower types, and what it gives.
struct Problem {
  GemmCommand gemm;
  std::vector<double> a, b, preActivation, c; ///< as many bytes as the widest type needs

  Problem(DType dtype, std::array<int64_t, 3> sizes, int64_t batch, bool transA, bool transB) {
    gemm.dtype = dtype;
    GemmShape &g = gemm.shape;
    g.m = sizes[0], g.n = sizes[1], g.k = sizes[2], g.batch = batch, g.transA = transA, g.transB = transB;
    g.lda = (transA ? g.m : g.k) + 3, g.ldb = (transB ? g.k : g.n) + 1, g.ldc = g.n + 2;
    g.strideA = g.lda * (transA ? g.k : g.m), g.strideB = g.ldb * (transB ? g.n : g.k), g.strideC = g.ldc * g.m + 5;
    g.activation = Activation::GeluTanhBackward;
    auto fill = [&](std::vector<double> &data, int64_t count, const auto &numberAt) {
      data.resize(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i)
        storeFromDouble(data.data(), dtype, i, numberAt(i));
    };
    fill(a, g.strideA * batch, [](int64_t i) { return static_cast<double>(i * 5 % 8); });
    fill(b, g.strideB * batch, [](int64_t i) { return static_cast<double>(i * 3 % 7); });
    fill(preActivation, g.strideC * batch, [](int64_t i) { return static_cast<double>(i * 11 % 97 - 48) / 8; });
    fill(c, g.strideC * batch, [](int64_t) { return 1000.0; });
  }

  void run(int threads) {
    WorkerPool pool(threads, 0, "");
    prepareGemmThread(gemm.dtype);
    runGemmGeluBackward(gemm, a.data(), b.data(), preActivation.data(), c.data(), pool);
  }

  double define(int64_t number, int64_t row, int64_t column) const {
    const GemmShape &g = gemm.shape;
    double sum = 0;
    for (int64_t k = 0; k < g.k; ++k)
      sum +=
          loadAsDouble(a.data(), gemm.dtype, number * g.strideA + (g.transA ? k * g.lda + row : row * g.lda + k)) *
          loadAsDouble(b.data(), gemm.dtype, number * g.strideB + (g.transB ? column * g.ldb + k : k * g.ldb + column));
    return sum * derivative(loadAsDouble(preActivation.data(), gemm.dtype, number * g.strideC + row * g.ldc + column));
  }

  /// No element is farther off than rounding once makes it, f32 apart, and what is between rows stays.
  void check() const {
    const GemmShape &g = gemm.shape;
    for (int64_t at = 0; at < g.strideC * g.batch; ++at) {
      int64_t number = at / g.strideC, row = at % g.strideC / g.ldc, column = at % g.strideC % g.ldc;
      double found = loadAsDouble(c.data(), gemm.dtype, at);
      if (row >= g.m || column >= g.n) {
        ASSERT_EQ(found, 1000) << at;
        continue;
      }
      double exact = define(number, row, column), rounded = 0;
      storeFromDouble(&rounded, gemm.dtype, 0, exact);
      rounded = loadAsDouble(&rounded, gemm.dtype, 0);
      ASSERT_LE(std::abs(found - exact), std::abs(rounded - exact) + 1e-5 * std::abs(exact) + 1e-4)
          << nameOf(gemm.dtype) << " " << number << " " << row << " " << column;
    }
  }
};

} // namespace

TEST(GemmGeluBackward, OfEachTypeAndLayout) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (int64_t batch : {1, 3}) {
          Problem problem(dtype, {7, 300, 60}, batch, transA, transB); // more columns than are summed together
          problem.run(1);
          problem.check();
        }
}

TEST(GemmGeluBackward, ThreadsChangeNoBit) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    Problem one(dtype, {37, 40, 50}, 2, false, false), three = one;
    one.run(1);
    three.run(3);
    EXPECT_EQ(one.c, three.c);
  }
}

TEST(GemmGeluBackward, OfNothing) {
  Problem problem(DType::BF16, {0, 8, 8}, 1, false, false);
  problem.run(1);
  problem.check();
}
