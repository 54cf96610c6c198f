//===- Scans.cpp - scans, products and extremes along one dim -------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace spmd::interp {
namespace {

/// The lines of a tensor along a dim.
struct Lines {
  int64_t outer = 1, extent, inner = 1;

  Lines(ShapeRef shape, int64_t dim) : extent(shape[dim]) {
    for (int64_t i = 0, e = shape.size(); i < e; ++i)
      (i < dim ? outer : inner) *= i == dim ? 1 : shape[i];
  }
  int64_t count() const { return outer * inner; }
  /// Flat position of element i of a line.
  int64_t at(int64_t line, int64_t i) const { return (line / inner * extent + i) * inner + line % inner; }
};

/// `combine` of a running value and the next element, in integers if both operand and result are.
template <typename Real, typename Whole>
LogicalResult scan(OpCall &call, bool keepsLast, double realStart, int64_t wholeStart, Real real, Whole whole) {
  const Tensor &self = call.tensor("self");
  Lines lines(self.shape(), call.integer("dim"));
  Tensor result = emptyResult(call, 0);
  if (keepsLast && lines.extent == 0) { // a reduction of nothing
    if (result.isFloating())
      std::fill_n(result.realData(), lines.count(), realStart);
    else
      std::fill_n(result.integerData(), lines.count(), wholeStart);
  }
  for (int64_t line = 0; line < lines.count(); ++line) {
    long double total = realStart;
    int64_t sum = wholeStart;
    for (int64_t i = 0; i < lines.extent; ++i) {
      int64_t from = lines.at(line, i), to = keepsLast ? line : from;
      if (result.isFloating()) {
        total = real(total, self.at(from));
        result.realData()[to] = static_cast<double>(total);
      } else {
        sum = whole(sum, self.integers()[from]);
        result.integerData()[to] = wrapTo(result.dtype(), sum);
      }
    }
  }
  call.result(std::move(result));
  return success();
}

long double multiply(long double a, double b) { return a * b; }
int64_t multiplyWhole(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }

long double logAddExp(long double a, double b) {
  long double high = a > b ? a : b, low = a > b ? b : a;
  return std::isinf(high) && high == low ? high : high + std::log1p(std::exp(low - high));
}

/// Whether an element replaces the extreme so far: a scan gives the last place, a reduction the first. Not-a-number is
/// beyond everything.
template <int sign, bool isScan>
bool beats(double now, double then) {
  if (std::isnan(now) || std::isnan(then))
    return std::isnan(now) && (isScan || !std::isnan(then));
  return isScan ? sign * now >= sign * then : sign * now > sign * then;
}
/// In integers, of which doubles cannot hold all.
template <int sign, bool isScan>
bool beats(int64_t now, int64_t then) {
  return (isScan && now == then) || (sign > 0 ? now > then : now < then);
}

/// The extreme of each line, or up to each element, and its place. Sign 1: the largest; -1: the smallest.
template <int sign, bool isScan>
LogicalResult evaluateExtreme(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Lines lines(self.shape(), call.integer("dim"));
  Tensor values = emptyResult(call, 0), places = emptyResult(call, 1);
  for (int64_t line = 0; line < lines.count(); ++line) {
    int64_t best = 0;
    for (int64_t i = 0; i < lines.extent; ++i) {
      int64_t now = lines.at(line, i), then = lines.at(line, best);
      bool isBetter = self.isFloating() ? beats<sign, isScan>(self.reals()[now], self.reals()[then])
                                        : beats<sign, isScan>(self.integers()[now], self.integers()[then]);
      best = isBetter ? i : best;
      int64_t to = isScan ? now : line, from = lines.at(line, best);
      if (values.isFloating())
        values.realData()[to] = self.reals()[from];
      else
        values.integerData()[to] = self.integers()[from];
      places.integerData()[to] = best;
    }
  }
  call.result(std::move(values));
  call.result(std::move(places));
  return success();
}

} // namespace

void registerScans(EvaluatorRegistry &r) {
  r.add("aten.cumsum", [](OpCall &c) {
    return scan(
        c, false, 0, 0, [](long double a, double b) { return a + b; },
        [](int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); });
  });
  r.add("aten.cumprod", [](OpCall &c) { return scan(c, false, 1, 1, multiply, multiplyWhole); });
  r.add("aten.prod.dim_int", [](OpCall &c) { return scan(c, true, 1, 1, multiply, multiplyWhole); });
  r.add("aten.logcumsumexp", [](OpCall &c) { return scan(c, false, -INFINITY, 0, logAddExp, multiplyWhole); });
  r.add("aten.max.dim", evaluateExtreme<1, false>);
  r.add("aten.min.dim", evaluateExtreme<-1, false>);
  r.add("aten.cummax", evaluateExtreme<1, true>);
  r.add("aten.cummin", evaluateExtreme<-1, true>);
}

} // namespace spmd::interp
