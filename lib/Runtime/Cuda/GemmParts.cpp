//===- GemmParts.cpp ------------------------------------------------------===//

#include "GemmParts.h"

namespace spmd::runtime::cuda {

/// Elements of 2 bytes in what fast algorithms load at once.
static constexpr int64_t kVector = 8;

static GemmShape &shapeOf(GemmPart &part) { return part.command.as<GemmCommand>()->shape; }

/// Moves where a reference begins, if there is one, by elements of 2 bytes.
static void move(GemmPart &part, int32_t ref, int64_t elements) {
  if (ref >= 0)
    part.addresses[static_cast<size_t>(ref)] += static_cast<Address>(2 * elements);
}

/// Whether every matrix begins, and every row of it, at a multiple of a vector; else the sizes are not what is slow.
static bool areRowsAligned(const GemmPart &part) {
  const GemmShape &g = part.command.as<GemmCommand>()->shape;
  for (int64_t elements : {g.lda, g.ldb, g.ldc, g.strideA, g.strideB, g.strideC})
    if (elements % kVector != 0)
      return false;
  for (int32_t ref : {0, 1, 2, g.residual, g.preActivation})
    if (ref >= 0 && part.addresses[static_cast<size_t>(ref)] % 16 != 0)
      return false;
  return true;
}

static void split(GemmPart whole, std::vector<GemmPart> &parts) {
  const GemmShape g = shapeOf(whole);
  bool isBF16 = whole.command.as<GemmCommand>()->dtype == DType::BF16;
  GemmPart rest = whole;
  auto isOdd = [](int64_t size) { return size > kVector && size % kVector != 0; };
  // The whole gets the multiple of a vector, the rest what is left, which begins there.
  auto cut = [&](int64_t GemmSizes::*dim) {
    int64_t at = g.*dim / kVector * kVector;
    shapeOf(whole).*dim = at;
    shapeOf(rest).*dim -= at;
    return at;
  };
  if (isOdd(g.n)) {
    int64_t at = cut(&GemmSizes::n);
    move(rest, 1, g.transB ? at * g.ldb : at);
    for (int32_t ref : {2, g.residual, g.preActivation, g.bias})
      move(rest, ref, at);
  } else if (g.transA && isOdd(g.m)) {
    int64_t at = cut(&GemmSizes::m);
    move(rest, 0, at);
    for (int32_t ref : {2, g.residual, g.preActivation})
      move(rest, ref, at * g.ldc);
  } else if ((!g.transA || g.transB) && isOdd(g.k) && isBF16 && g.beta == 0 && g.residual < 0) {
    // In f16 the sum of the last products alone might be too large.
    int64_t at = cut(&GemmSizes::k);
    move(rest, 0, g.transA ? at * g.lda : at);
    move(rest, 1, g.transB ? at : at * g.ldb);
    GemmShape &last = shapeOf(rest);
    last.activation = Activation::None;
    last.bias = last.preActivation = -1;
    shapeOf(whole).beta = 1;
    parts.push_back(std::move(rest));
    parts.push_back(std::move(whole));
    return;
  } else {
    parts.push_back(std::move(whole));
    return;
  }
  split(std::move(whole), parts);
  parts.push_back(std::move(rest));
}

std::vector<GemmPart> splitGemm(GemmPart gemm, double leastFlops) {
  const GemmCommand &command = *gemm.command.as<GemmCommand>();
  const GemmShape &g = command.shape;
  double flops = 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) *
                 static_cast<double>(g.k);
  std::vector<GemmPart> parts;
  if (sizeOf(command.dtype) != 2 || flops < leastFlops || g.biasGradientOf != GemmOperand::None ||
      g.readsPreActivation() || !areRowsAligned(gemm))
    parts.push_back(std::move(gemm));
  else
    split(std::move(gemm), parts);
  return parts;
}

} // namespace spmd::runtime::cuda
