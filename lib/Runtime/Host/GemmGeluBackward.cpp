//===- GemmGeluBackward.cpp - GEMMs times the derivative of gelu ----------===//
//
// What GPUs' libraries do on the way, for their emulation. In f32 the GEMM is as fast as any; of narrow types the sums,
// which must not be rounded before, go along k, each product and each sum rounded to f32.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <algorithm>
#include <cmath>

using namespace spmd::runtime;

namespace {

struct Work {
  const GemmCommand &gemm;
  const void *a, *b, *preActivation;
  void *c;
};

/// gelu'(x) with gelu by tanh, step by step as clusters compute it (geluBackward in dialects/Aten/ScalarFunctions.cpp).
float derivativeOfGeluTanh(float x) {
  constexpr double kBeta = M_SQRT2 * M_2_SQRTPI * 0.5, kKappa = 0.044715, kFactor = -2 * kBeta * M_LOG2E;
  float factor = static_cast<float>(kFactor) + static_cast<float>(kFactor * kKappa) * (x * x);
  float gate = 1 / (1 + std::exp2(x * factor));
  float inner = static_cast<float>(2 * kBeta) + static_cast<float>(6 * kBeta * kKappa) * (x * x);
  // gate (1 - gate) first: it is zero where what follows overflows.
  return gate + gate * (1 - gate) * x * inner;
}

/// The sums of `columns` elements of a row of C from `column` on.
template <typename Element>
void sumProducts(const Work &work, int64_t number, int64_t row, int64_t column, int64_t columns, float *sums) {
  const GemmShape &g = work.gemm.shape;
  const auto *a = static_cast<const Element *>(work.a) + number * g.strideA + row * (g.transA ? 1 : g.lda);
  const auto *b = static_cast<const Element *>(work.b) + number * g.strideB + column * (g.transB ? g.ldb : 1);
  std::fill_n(sums, columns, 0.0f);
  for (int64_t k = 0; k < g.k; ++k) {
    auto x = static_cast<float>(a[k * (g.transA ? g.lda : 1)]);
    const Element *y = b + k * (g.transB ? 1 : g.ldb);
    for (int64_t j = 0; j < columns; ++j)
      sums[j] += x * static_cast<float>(y[j * (g.transB ? g.ldb : 1)]);
  }
}

/// Rows [begin, end) of all matrices of the batch. Those of f32 are multiplied already.
template <typename Element>
void runRows(void *context, int64_t begin, int64_t end) {
  constexpr int64_t kTogether = 256; // sums that stay in the first cache
  const Work &work = *static_cast<const Work *>(context);
  const GemmShape &g = work.gemm.shape;
  for (int64_t i = begin; i < end; ++i) {
    int64_t number = i / g.m, row = i % g.m, first = number * g.strideC + row * g.ldc;
    const auto *x = static_cast<const Element *>(work.preActivation) + first;
    auto *c = static_cast<Element *>(work.c) + first;
    for (int64_t column = 0; column < g.n; column += kTogether) {
      int64_t columns = std::min(kTogether, g.n - column);
      float sums[kTogether];
      if constexpr (std::is_same_v<Element, float>)
        std::copy_n(c + column, columns, sums);
      else
        sumProducts<Element>(work, number, row, column, columns, sums);
      for (int64_t j = 0; j < columns; ++j)
        c[column + j] = Element(sums[j] * derivativeOfGeluTanh(static_cast<float>(x[column + j])));
    }
  }
}

} // namespace

void spmd::runtime::runGemmGeluBackward(const GemmCommand &gemm, const void *a, const void *b,
                                        const void *preActivation, void *c, WorkerPool &pool) {
  const GemmShape &g = gemm.shape;
  if (gemm.dtype == DType::F32)
    runGemm(gemm, a, b, c, pool);
  Work work{gemm, a, b, preActivation, c};
  auto *run = gemm.dtype == DType::F32    ? runRows<float>
              : gemm.dtype == DType::BF16 ? runRows<BFloat16>
                                          : runRows<Float16>;
  int64_t rows = g.batch * g.m, threads = pool.threads();
  if (rows > 0)
    pool.parallelFor(rows, (rows + threads - 1) / threads, run, &work);
}
