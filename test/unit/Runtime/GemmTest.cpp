#include "spmd/Runtime/Host/Gemm.h"
#include "TestSupport.h"

using namespace spmd::runtime;

namespace {
struct Shape {
  int64_t m, n, k, batch;
};

/// Small integers, so that products are exact in any order.
template <typename T>
std::vector<T> numbers(int64_t count, int64_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T &value : values)
    value = static_cast<T>((seed = (seed * 1103515245 + 12345) & 0x7fffffff) % 7 - 3);
  return values;
}

template <typename T>
void compareWithLoops(const Shape &s, bool transA, bool transB, double beta, WorkerPool &pool) {
  GemmCommand gemm;
  gemm.dtype = sizeof(T) == 4 ? DType::F32 : DType::F64;
  GemmShape &g = gemm.shape;
  g.m = s.m, g.n = s.n, g.k = s.k, g.batch = s.batch, g.beta = beta;
  g.transA = transA, g.transB = transB;
  // Rows are longer than needed.
  g.lda = (transA ? s.m : s.k) + 3;
  g.ldb = (transB ? s.k : s.n) + 1;
  g.ldc = s.n + 2;
  g.strideA = g.lda * (transA ? s.k : s.m) + 5;
  g.strideB = g.ldb * (transB ? s.n : s.k);
  g.strideC = g.ldc * s.m + 1;
  std::vector<T> a = numbers<T>(g.strideA * s.batch, 1), b = numbers<T>(g.strideB * s.batch, 2),
                 c = numbers<T>(g.strideC * s.batch, 3), expected = c;
  auto at = [](const std::vector<T> &v, int64_t i) { return v[static_cast<size_t>(i)]; };
  for (int64_t p = 0; p < s.batch; ++p)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        auto index = static_cast<size_t>(p * g.strideC + i * g.ldc + j);
        T sum = beta != 0 ? expected[index] : 0;
        for (int64_t l = 0; l < s.k; ++l)
          sum += at(a, p * g.strideA + (transA ? l * g.lda + i : i * g.lda + l)) *
                 at(b, p * g.strideB + (transB ? j * g.ldb + l : l * g.ldb + j));
        expected[index] = sum;
      }
  runGemm(gemm, a.data(), b.data(), c.data(), pool);
  EXPECT_EQ(c, expected) << s.m << "x" << s.n << "x" << s.k << " batch " << s.batch << (transA ? " A^T" : "")
                         << (transB ? " B^T" : "") << " beta " << beta << " threads " << pool.threads();
}
} // namespace

TEST(Gemm, EqualsLoops) {
  const Shape shapes[] = {{1, 1, 1, 1},     {3, 5, 2, 1},  {70, 40, 33, 1},
                          {40, 100, 50, 1}, {17, 9, 8, 3}, {50, 30, 40, 5}};
  for (int64_t threads : {1, 2, 3}) {
    WorkerPool pool(threads, 50, "test");
    for (const Shape &shape : shapes)
      for (bool transA : {false, true})
        for (bool transB : {false, true})
          for (double beta : {0.0, 1.0}) {
            compareWithLoops<float>(shape, transA, transB, beta, pool);
            compareWithLoops<double>(shape, transA, transB, beta, pool);
          }
  }
}
