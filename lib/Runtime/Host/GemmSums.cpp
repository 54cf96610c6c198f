//===- GemmSums.cpp - sums of a matrix of a GEMM --------------------------===//

#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <algorithm>

using namespace spmd::runtime;

/// Sums `count` vectors of `k` elements, which begin `apart` elements from each other and have their elements `step`
/// apart.
template <typename Element, typename Sum>
static void sumVectors(const void *data, int64_t count, int64_t k, int64_t apart, int64_t step, void *sums) {
  constexpr int64_t kTogether = 256; // sums that stay in the first cache
  auto *elements = static_cast<const Element *>(data);
  for (int64_t first = 0; first < count; first += kTogether) {
    Sum partial[kTogether] = {};
    int64_t together = std::min(kTogether, count - first);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < together; ++j)
        partial[j] += static_cast<Sum>(elements[(first + j) * apart + i * step]);
    for (int64_t j = 0; j < together; ++j)
      static_cast<Element *>(sums)[first + j] = static_cast<Element>(partial[j]);
  }
}

void spmd::runtime::runBiasGradient(const GemmCommand &gemm, const void *a, const void *b, const void *c, void *sums) {
  const GemmShape &g = gemm.shape;
  bool isOfA = g.biasGradientOf == GemmOperand::A, isOfC = g.biasGradientOf == GemmOperand::C;
  const void *data = isOfA ? a : isOfC ? c : b;
  int64_t ld = isOfA ? g.lda : isOfC ? g.ldc : g.ldb, terms = isOfC ? g.m : g.k;
  // Rows of op(A), columns of op(B) or C: side by side in memory, or one below the other.
  bool areColumns = isOfA ? g.transA : isOfC || !g.transB;
  int64_t apart = areColumns ? 1 : ld, step = areColumns ? ld : 1;
  switch (gemm.dtype) {
  case DType::F64:
    return sumVectors<double, double>(data, g.numBiasGradients(), terms, apart, step, sums);
  case DType::BF16:
    return sumVectors<BFloat16, float>(data, g.numBiasGradients(), terms, apart, step, sums);
  case DType::F16:
    return sumVectors<Float16, float>(data, g.numBiasGradients(), terms, apart, step, sums);
  default:
    return sumVectors<float, float>(data, g.numBiasGradients(), terms, apart, step, sums);
  }
}
