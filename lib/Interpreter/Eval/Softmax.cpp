//===- Softmax.cpp - softmax, its logarithm, their gradients --------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace spmd::interp {

/// Calls `row(begin, step, size)` for every line along `dim`.
template <typename F>
static void forEachLine(ShapeRef shape, int64_t dim, F row) {
  int64_t size = shape.empty() ? 1 : shape[dim];
  int64_t step = shape.empty() ? 1 : contiguousStrides(shape)[dim];
  int64_t lines = size ? numElements(shape) / size : 0;
  for (int64_t i = 0; i < lines; ++i)
    row(i / step * step * size + i % step, step, size);
}

template <bool logarithm>
static LogicalResult evaluateSoftmax(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Tensor result(call.resultType(), self.shape());
  const double *x = self.reals().data();
  double *y = result.realData();
  forEachLine(self.shape(), call.integer("dim"), [&](int64_t begin, int64_t step, int64_t size) {
    double largest = -INFINITY;
    for (int64_t i = 0; i < size; ++i)
      largest = std::max(largest, x[begin + i * step]);
    long double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += std::exp(x[begin + i * step] - largest);
    double total = sum, shift = std::log(total);
    for (int64_t i = 0; i < size; ++i) {
      double z = x[begin + i * step] - largest;
      y[begin + i * step] = logarithm ? z - shift : std::exp(z) / total;
    }
  });
  call.result(std::move(result));
  return success();
}

template <bool logarithm>
static LogicalResult evaluateBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_output"), &output = call.tensor("output");
  Tensor result(call.resultType(), output.shape());
  const double *g = grad.reals().data(), *y = output.reals().data();
  double *dx = result.realData();
  forEachLine(output.shape(), call.integer("dim"), [&](int64_t begin, int64_t step, int64_t size) {
    long double sum = 0;
    for (int64_t i = begin, n = 0; n < size; ++n, i += step)
      sum += logarithm ? g[i] : g[i] * y[i];
    double total = sum;
    for (int64_t i = begin, n = 0; n < size; ++n, i += step)
      dx[i] = logarithm ? g[i] - std::exp(y[i]) * total : y[i] * (g[i] - total);
  });
  call.result(std::move(result));
  return success();
}

void registerSoftmax(EvaluatorRegistry &r) {
  r.add("aten._softmax", evaluateSoftmax<false>);
  r.add("aten._log_softmax", evaluateSoftmax<true>);
  r.add("aten._softmax_backward_data", evaluateBackward<false>);
  r.add("aten._log_softmax_backward_data", evaluateBackward<true>);
}

} // namespace spmd::interp
