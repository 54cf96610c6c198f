//===- Losses.cpp - losses and their gradients ----------------------------===//

#include "Map.h"
#include <functional>

using namespace mlir;

namespace spmd::interp {

enum Reduction : int64_t { none = 0, mean = 1, sum = 2 };

/// The rows [n] and classes of a [n, classes] or [classes] input, and the weight
/// of each row's target (0 for ignored rows).
struct NllRows {
  int64_t rows, classes;
  std::vector<double> weights;
};

static FailureOr<NllRows> nllRows(OpCall &call) {
  const Tensor &self = call.tensor("self"), &target = call.tensor("target"), &weight = call.tensor("weight");
  if (self.rank() > 2)
    return call.error() << "more than two dimensions";
  NllRows rows{self.rank() == 2 ? self.dim(0) : 1, self.shape().back(), {}};
  int64_t ignored = call.integer("ignore_index");
  if (target.numel() != rows.rows)
    return call.error() << target.numel() << " targets for " << rows.rows << " rows";
  for (int64_t i = 0; i < rows.rows; ++i) {
    int64_t t = target.integers()[i];
    if (t != ignored && (t < 0 || t >= rows.classes))
      return call.error() << "target " << t << " of row " << i << " is not in [0, " << rows.classes << ")";
    rows.weights.push_back(t == ignored ? 0 : weight ? weight.reals()[t] : 1);
  }
  return rows;
}

static LogicalResult evaluateNllForward(OpCall &call) {
  FailureOr<NllRows> rows = nllRows(call);
  if (failed(rows))
    return failure();
  const Tensor &self = call.tensor("self"), &target = call.tensor("target");
  int64_t reduction = call.integer("reduction");
  Tensor losses(self.dtype(), target.shape());
  long double total = 0, weights = 0;
  for (int64_t i = 0; i < rows->rows; ++i) {
    double w = rows->weights[i];
    double loss = w == 0 ? 0 : -w * self.reals()[i * rows->classes + target.integers()[i]];
    losses.set(i, loss);
    total += loss;
    weights += w;
  }
  if (reduction == none && target.rank() > 0) {
    // PyTorch leaves the total weight at zero here.
    call.result(std::move(losses));
    call.result(Tensor::scalar(self.dtype(), 0));
    return success();
  }
  call.result(Tensor::scalar(self.dtype(), reduction == mean ? total / weights : total));
  call.result(Tensor::scalar(self.dtype(), weights));
  return success();
}

static LogicalResult evaluateNllBackward(OpCall &call) {
  FailureOr<NllRows> rows = nllRows(call);
  if (failed(rows))
    return failure();
  const Tensor &self = call.tensor("self"), &target = call.tensor("target"), &grad = call.tensor("grad_output");
  bool isMean = call.integer("reduction") == mean;
  double total = isMean ? call.tensor("total_weight").at(0) : 1;
  Tensor result(self.dtype(), self.shape());
  for (int64_t i = 0; i < rows->rows; ++i) {
    double w = rows->weights[i];
    if (w != 0)
      result.set(i * rows->classes + target.integers()[i], -w * grad.at(grad.numel() == 1 ? 0 : i) / total);
  }
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateMse(OpCall &call) {
  const Tensor &self = call.tensor("self"), &target = call.tensor("target");
  auto square = [](double a, double b) { return (a - b) * (a - b); };
  if (failed(mapReals(call, square, self, target)))
    return failure();
  int64_t reduction = call.integer("reduction");
  if (reduction == none)
    return success();
  long double total = 0;
  for (double value : call.results[0].reals())
    total += value;
  int64_t count = call.results[0].numel();
  call.results[0] = Tensor::scalar(call.resultType(), reduction == mean ? total / count : total);
  return success();
}

static LogicalResult evaluateMseBackward(OpCall &call) {
  const Tensor &self = call.tensor("self"), &target = call.tensor("target");
  double scale = call.integer("reduction") == mean ? 2.0 / self.numel() : 2.0;
  return mapReals(
      call, [=](double g, double a, double b) { return scale * (a - b) * g; }, call.tensor("grad_output"), self,
      target);
}

void registerLosses(EvaluatorRegistry &r) {
  r.add("aten.nll_loss_forward", evaluateNllForward);
  r.add("aten.nll_loss_backward", evaluateNllBackward);
  r.add("aten.mse_loss", evaluateMse);
  r.add("aten.mse_loss_backward", evaluateMseBackward);
}

} // namespace spmd::interp
