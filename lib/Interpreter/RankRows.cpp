//===- RankRows.cpp - how ranks' values make up a global one --------------===//

#include "spmd/Interpreter/RankRows.h"
#include <algorithm>
#include <cmath>

namespace spmd::interp {

/// The strides of a tensor whose dim `dim` is read as two dims [pre][rows].
static Shape splitStrides(ShapeRef shape, int64_t dim, int64_t pre) {
  Shape strides = contiguousStrides(shape);
  int64_t rows = pre == 0 ? 0 : shape[dim] / pre;
  strides.insert(strides.begin() + dim, strides[dim] * rows);
  return strides;
}

static Shape splitShape(ShapeRef shape, int64_t dim, int64_t pre, int64_t rows) {
  Shape result(shape);
  result[dim] = rows;
  result.insert(result.begin() + dim, pre);
  return result;
}

static Shape withDim(ShapeRef shape, int64_t dim, int64_t size) {
  Shape result(shape);
  result[dim] = size;
  return result;
}

Tensor takeRows(const Tensor &whole, int64_t dim, int64_t pre, int64_t chunk, int64_t position) {
  int64_t total = whole.dim(dim) / pre;
  int64_t start = std::min(position * chunk, total);
  int64_t count = std::min(chunk, total - start);
  Shape from = splitStrides(whole.shape(), dim, pre);
  Tensor rows = gatherStrided(whole, splitShape(whole.shape(), dim, pre, count), from, start * from[dim + 1]);
  Tensor result(whole.dtype(), withDim(whole.shape(), dim, pre * chunk));
  scatterStrided(result, rows, splitStrides(result.shape(), dim, pre));
  return result;
}

Tensor joinRows(llvm::ArrayRef<Tensor> parts, int64_t dim, int64_t pre, int64_t total) {
  const Tensor &first = parts.front();
  int64_t chunk = first.dim(dim) / pre;
  Tensor result(first.dtype(), withDim(first.shape(), dim, pre * total));
  Shape to = splitStrides(result.shape(), dim, pre);
  for (int64_t i = 0, e = parts.size(); i < e; ++i) {
    int64_t start = std::min(i * chunk, total);
    int64_t count = std::min(chunk, total - start);
    Tensor rows =
        gatherStrided(parts[i], splitShape(first.shape(), dim, pre, count), splitStrides(first.shape(), dim, pre));
    scatterStrided(result, rows, to, start * to[dim + 1]);
  }
  return result;
}

static double combineTwo(double a, double b, ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return a + b;
  case ReduceKind::max:
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  case ReduceKind::min:
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  case ReduceKind::norm2:
    return a + b * b;
  }
  return NAN;
}

static int64_t combineTwo(int64_t a, int64_t b, ReduceKind kind) {
  switch (kind) {
  case ReduceKind::max:
    return std::max(a, b);
  case ReduceKind::min:
    return std::min(a, b);
  default:
    return a + b;
  }
}

Tensor combine(llvm::ArrayRef<Tensor> values, ReduceKind kind, bool roundEach) {
  const Tensor &first = values.front();
  Tensor result(first.dtype(), first.shape());
  for (int64_t i = 0, e = first.numel(); i < e; ++i) {
    if (!first.isFloating()) {
      int64_t accumulated = first.integers()[i];
      for (const Tensor &value : values.drop_front())
        accumulated = combineTwo(accumulated, value.integers()[i], kind);
      result.integerData()[i] = wrapTo(first.dtype(), accumulated);
      continue;
    }
    auto rounded = [&](double x) { return roundEach ? roundTo(first.dtype(), x) : x; };
    double accumulated = first.reals()[i];
    if (kind == ReduceKind::norm2)
      accumulated = rounded(accumulated * accumulated);
    for (const Tensor &value : values.drop_front())
      accumulated = rounded(combineTwo(accumulated, value.reals()[i], kind));
    if (kind == ReduceKind::norm2)
      accumulated = rounded(std::sqrt(accumulated));
    result.realData()[i] = accumulated;
  }
  return result;
}

} // namespace spmd::interp
