//===- GemmParts.cpp ------------------------------------------------------===//

#include "GemmParts.h"

namespace spmd::runtime::cuda {

/// Elements of 2 bytes in what fast algorithms load at once.
static constexpr int64_t kVector = 8;

/// Moves the matrices that have a dim to its element number `at`.
static void moveRows(GemmPart &part, int64_t at) {
  const GemmShape &g = part.command.as<GemmCommand>()->shape;
  Address size = static_cast<Address>(sizeOf(part.command.as<GemmCommand>()->dtype));
  part.addresses[0] += static_cast<Address>(g.transA ? at : at * g.lda) * size;
  for (int32_t ref : {2, g.residual, g.preActivation})
    if (ref >= 0)
      part.addresses[static_cast<size_t>(ref)] += static_cast<Address>(at * g.ldc) * size;
}

static void moveColumns(GemmPart &part, int64_t at) {
  const GemmShape &g = part.command.as<GemmCommand>()->shape;
  Address size = static_cast<Address>(sizeOf(part.command.as<GemmCommand>()->dtype));
  part.addresses[1] += static_cast<Address>(g.transB ? at * g.ldb : at) * size;
  for (int32_t ref : {2, g.residual, g.preActivation, g.bias})
    if (ref >= 0)
      part.addresses[static_cast<size_t>(ref)] += static_cast<Address>(at) * size;
}

static void moveTerms(GemmPart &part, int64_t at) {
  const GemmShape &g = part.command.as<GemmCommand>()->shape;
  Address size = static_cast<Address>(sizeOf(part.command.as<GemmCommand>()->dtype));
  part.addresses[0] += static_cast<Address>(g.transA ? at * g.lda : at) * size;
  part.addresses[1] += static_cast<Address>(g.transB ? at : at * g.ldb) * size;
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

static GemmShape &shapeOf(GemmPart &part) { return part.command.as<GemmCommand>()->shape; }

static void split(GemmPart whole, std::vector<GemmPart> &parts) {
  const GemmCommand &gemm = *whole.command.as<GemmCommand>();
  const GemmShape g = gemm.shape;
  auto isOdd = [](int64_t size) { return size > kVector && size % kVector != 0; };
  auto multiple = [](int64_t size) { return size / kVector * kVector; };
  GemmPart rest = whole;
  if (isOdd(g.n)) {
    int64_t main = shapeOf(whole).n = multiple(g.n);
    shapeOf(rest).n -= main;
    moveColumns(rest, main);
    split(std::move(whole), parts);
    parts.push_back(std::move(rest));
  } else if (g.transA && isOdd(g.m)) {
    int64_t main = shapeOf(whole).m = multiple(g.m);
    shapeOf(rest).m -= main;
    moveRows(rest, main);
    split(std::move(whole), parts);
    parts.push_back(std::move(rest));
  } else if ((!g.transA || g.transB) && isOdd(g.k) && gemm.dtype == DType::BF16 && g.beta == 0 && g.residual < 0) {
    // In f16 the sum of the last products alone might be too large.
    int64_t main = shapeOf(whole).k = multiple(g.k);
    shapeOf(whole).beta = 1;
    GemmShape &last = shapeOf(rest);
    last.k -= main;
    last.activation = Activation::None;
    last.bias = last.preActivation = -1;
    moveTerms(rest, main);
    parts.push_back(std::move(rest));
    parts.push_back(std::move(whole));
  } else {
    parts.push_back(std::move(whole));
  }
}

std::vector<GemmPart> splitGemm(GemmPart gemm, double leastFlops) {
  const GemmCommand &command = *gemm.command.as<GemmCommand>();
  const GemmShape &g = command.shape;
  double flops = 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) *
                 static_cast<double>(g.k);
  std::vector<GemmPart> parts;
  if (sizeOf(command.dtype) != 2 || flops < leastFlops || g.biasGradientOf != GemmOperand::None ||
      !areRowsAligned(gemm))
    parts.push_back(std::move(gemm));
  else
    split(std::move(gemm), parts);
  return parts;
}

} // namespace spmd::runtime::cuda
