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
  ReducedDims dims(self.shape(), call.dims("dim", self.rank()),
                   call.flag("keepdim"));
  Tensor rows = dims.gather(self.converted(
      isFloating(call.resultType(index)) && !self.isFloating()
          ? call.resultType(index)
          : self.dtype()));
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

static void sumRow(Tensor &out, int64_t at, const Tensor &t, int64_t begin,
                   int64_t count) {
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

template <bool largest>
static void extremeRow(Tensor &out, int64_t at, const Tensor &t, int64_t begin,
                       int64_t count) {
  double best = t.at(begin);
  for (int64_t i = 1; i < count && !std::isnan(best); ++i) {
    double value = t.at(begin + i);
    if (std::isnan(value) || (largest ? value > best : value < best))
      best = value;
  }
  out.set(at, best);
}

static LogicalResult evaluateVectorNorm(OpCall &call) {
  double order = call.number("ord", 2);
  return reduce(call, [=](Tensor &out, int64_t at, const Tensor &t,
                          int64_t begin, int64_t count) {
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
  auto mean = [](const Tensor &t, int64_t begin, int64_t count) {
    return sumOf(t, begin, count) / count;
  };
  LogicalResult status = reduce(
      call, [=](Tensor &out, int64_t at, const Tensor &t, int64_t begin,
                int64_t count) {
        long double m = mean(t, begin, count), sum = 0;
        for (int64_t i = 0; i < count; ++i)
          sum += (t.reals()[begin + i] - m) * (t.reals()[begin + i] - m);
        out.set(at, sum / std::max(count - correction, 0.0));
      });
  if (failed(status))
    return failure();
  return reduce(
      call,
      [=](Tensor &out, int64_t at, const Tensor &t, int64_t begin,
          int64_t count) { out.set(at, mean(t, begin, count)); },
      1);
}

static LogicalResult evaluateArgmax(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape dims;
  if (call.has("dim"))
    dims.push_back(call.dim("dim", self.rank()));
  else
    for (int64_t i = 0; i < self.rank(); ++i)
      dims.push_back(i);
  ReducedDims groups(self.shape(), dims, call.flag("keepdim"));
  Tensor rows = groups.gather(self);
  Tensor result(DType::i64, groups.resultShape);
  for (int64_t i = 0; i < groups.outer; ++i) {
    int64_t best = 0;
    for (int64_t k = 1; k < groups.inner; ++k)
      if (rows.at(i * groups.inner + k) > rows.at(i * groups.inner + best))
        best = k;
    result.set(i, best);
  }
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateCumsum(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Tensor source = self.converted(call.resultType());
  Tensor result(call.resultType(), self.shape());
  int64_t dim = self.rank() ? call.dim("dim", self.rank()) : 0;
  int64_t size = self.rank() ? self.dim(dim) : 1;
  int64_t step = self.rank() ? contiguousStrides(self.shape())[dim] : 1;
  for (int64_t i = 0, e = self.numel(); i < e; ++i) {
    bool first = i / step % size == 0;
    if (source.isFloating())
      result.realData()[i] =
          source.reals()[i] + (first ? 0 : result.reals()[i - step]);
    else
      result.integerData()[i] =
          source.integers()[i] + (first ? 0 : result.integers()[i - step]);
  }
  call.result(std::move(result));
  return success();
}

void registerReductions(EvaluatorRegistry &r) {
  r.add("aten.sum.dim_IntList", [](OpCall &c) { return reduce(c, sumRow); });
  r.add("aten.mean.dim", [](OpCall &c) {
    return reduce(c, [](Tensor &out, int64_t at, const Tensor &t, int64_t begin,
                        int64_t count) {
      out.set(at, sumOf(t, begin, count) / count);
    });
  });
  r.add("aten.amax", [](OpCall &c) { return reduce(c, extremeRow<true>); });
  r.add("aten.amin", [](OpCall &c) { return reduce(c, extremeRow<false>); });
  r.add("aten.any.dim", [](OpCall &c) {
    return reduce(c, [](Tensor &out, int64_t at, const Tensor &t, int64_t begin,
                        int64_t count) {
      bool any = false;
      for (int64_t i = 0; i < count; ++i)
        any |= t.at(begin + i) != 0;
      out.set(at, any);
    });
  });
  r.add("aten.linalg_vector_norm", evaluateVectorNorm);
  r.add("aten.var_mean.correction", evaluateVarMean);
  r.add("aten.argmax", evaluateArgmax);
  r.add("aten.cumsum", evaluateCumsum);
}

} // namespace spmd::interp
