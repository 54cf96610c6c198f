//===- AccessMap.cpp - affine element index, taken apart ------------------===//

#include "dialects/Kernel/AccessMap.h"
#include <algorithm>

using namespace mlir;

namespace spmd::kernel {

static void addTerm(AffineExpr expr, int64_t factor, AccessMap &out) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    out.constant += factor * cast<AffineConstantExpr>(expr).getValue();
    return;
  case AffineExprKind::DimId:
    out.strides[cast<AffineDimExpr>(expr).getPosition()] += factor;
    return;
  case AffineExprKind::SymbolId:
    out.symbols[cast<AffineSymbolExpr>(expr).getPosition()] += factor;
    return;
  case AffineExprKind::Add: {
    auto sum = cast<AffineBinaryOpExpr>(expr);
    addTerm(sum.getLHS(), factor, out);
    addTerm(sum.getRHS(), factor, out);
    return;
  }
  case AffineExprKind::Mul: {
    auto product = cast<AffineBinaryOpExpr>(expr);
    if (auto c = dyn_cast<AffineConstantExpr>(product.getRHS()))
      return addTerm(product.getLHS(), factor * c.getValue(), out);
    break;
  }
  default:
    break;
  }
  out.rest.push_back(expr * factor);
}

AccessMap AccessMap::get(AffineMap map) {
  AccessMap out;
  out.strides.assign(map.getNumDims(), 0);
  out.symbols.assign(map.getNumSymbols(), 0);
  addTerm(simplifyAffineExpr(map.getResult(0), map.getNumDims(), map.getNumSymbols()), 1, out);
  return out;
}

bool AccessMap::uses(unsigned d) const {
  return strides[d] != 0 || llvm::any_of(rest, [&](AffineExpr e) { return e.isFunctionOfDim(d); });
}

std::optional<int64_t> AccessMap::getStride(unsigned d) const {
  if (llvm::any_of(rest, [&](AffineExpr e) { return e.isFunctionOfDim(d); }))
    return std::nullopt;
  return strides[d];
}

std::optional<std::pair<int64_t, int64_t>> AccessMap::getRange(ArrayRef<int64_t> dims) const {
  if (!isLinear() || llvm::any_of(symbols, [](int64_t s) { return s != 0; }))
    return std::nullopt;
  int64_t low = constant, high = constant;
  for (auto [stride, size] : llvm::zip_equal(strides, dims))
    (stride < 0 ? low : high) += stride * (size - 1);
  return std::make_pair(low, high);
}

int64_t AccessMap::countReached(ArrayRef<int64_t> dims, int64_t elements) const {
  int64_t reached = elements;
  if (auto range = getRange(dims))
    reached = std::min(range->second, elements - 1) - std::max<int64_t>(range->first, 0) + 1;
  int64_t points = 1;
  for (unsigned d = 0; d < dims.size() && points < reached; ++d)
    if (uses(d))
      points *= dims[d];
  return std::clamp<int64_t>(points, 0, std::max<int64_t>(reached, 0));
}

} // namespace spmd::kernel
