//===- Reductions.cpp - reductions over dimensions ------------------------===//
//
// Elements are combined in row-major order of the reduced dims. Sums are carried
// in extended precision, so that what differs between two programs is their
// meaning and not the order in which they add.
//===----------------------------------------------------------------------===//

#include "Map.h"
#include "Rows.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

/// One value per group of reduced elements.
template <typename F>
static LogicalResult reduce(OpCall &call, F combine, unsigned index = 0) {
  const Tensor &self = call.tensor("self");
  ReducedDims dims(self.shape(), call.integers("dim"), call.flag("keepdim"));
  Tensor rows = dims.gather(
      self.converted(isFloating(call.resultType(index)) && !self.isFloating() ? call.resultType(index) : self.dtype()));
  Tensor result(call.resultType(index), dims.resultShape);
  for (int64_t i = 0, e = dims.outer; i < e; ++i)
    combine(result, i, rows, i * dims.inner, dims.inner);
  call.result(std::move(result));
  return success();
}

static long double sumOf(const Tensor &t, int64_t begin, int64_t count) {
  long double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += t.reals()[begin + i];
  return sum;
}

static void sumRow(Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
  if (t.isFloating())
    return out.set(at, sumOf(t, begin, count));
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += t.integers()[begin + i];
  out.set(at, 0);
  if (out.isFloating())
    out.set(at, sum);
  else
    out.integerData()[at] = wrapTo(out.dtype(), sum);
}

/// Sign 1: the largest; -1: the smallest.
template <int sign>
static void extremeRow(Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
  double best = count == 0 ? -sign * INFINITY : t.at(begin);
  for (int64_t i = 1; i < count && !std::isnan(best); ++i) {
    double value = t.at(begin + i);
    if (std::isnan(value) || sign * value > sign * best)
      best = value;
  }
  out.set(at, best);
}

static LogicalResult evaluateVectorNorm(OpCall &call) {
  double order = call.number("ord", 2);
  return reduce(call, [=](Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
    long double sum = 0;
    double largest = 0, smallest = INFINITY;
    for (int64_t i = 0; i < count; ++i) {
      double value = std::fabs(t.at(begin + i));
      largest = std::isnan(value) ? value : std::max(largest, value);
      smallest = std::min(smallest, value);
      if (order == 2)
        sum += static_cast<long double>(value) * value;
      else if (order == 0)
        sum += value != 0;
      else if (std::isfinite(order))
        sum += std::pow(value, order);
    }
    if (order == INFINITY)
      out.set(at, largest);
    else if (order == -INFINITY)
      out.set(at, smallest);
    else if (order == 0)
      out.set(at, sum);
    else
      out.set(at, order == 2 ? std::sqrt(sum) : std::pow(sum, 1 / order));
  });
}

static LogicalResult evaluateVarMean(OpCall &call) {
  double correction = call.number("correction", 1);
  auto mean = [](const Tensor &t, int64_t begin, int64_t count) { return sumOf(t, begin, count) / count; };
  LogicalResult status = reduce(call, [=](Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
    long double m = mean(t, begin, count), sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += (t.reals()[begin + i] - m) * (t.reals()[begin + i] - m);
    out.set(at, sum / std::max(count - correction, 0.0));
  });
  if (failed(status))
    return failure();
  return reduce(
      call,
      [=](Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
        out.set(at, mean(t, begin, count));
      },
      1);
}

void registerReductions(EvaluatorRegistry &r) {
  r.add("aten.sum.dim_IntList", [](OpCall &c) { return reduce(c, sumRow); });
  r.add("aten.mean.dim", [](OpCall &c) {
    return reduce(c, [](Tensor &out, int64_t at, const Tensor &t, int64_t begin, int64_t count) {
      out.set(at, sumOf(t, begin, count) / count);
    });
  });
  r.add("aten.amax", [](OpCall &c) { return reduce(c, extremeRow<1>); });
  r.add("aten.amin", [](OpCall &c) { return reduce(c, extremeRow<-1>); });
  r.add("aten.linalg_vector_norm", evaluateVectorNorm);
  r.add("aten.var_mean.correction", evaluateVarMean);
}

} // namespace spmd::interp
