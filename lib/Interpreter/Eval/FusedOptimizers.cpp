//===- FusedOptimizers.cpp - Adam, AdamW and SGD as one list op -----------===//
//
// PyTorch's fused kernels, element by element. Hyper-parameters are per param
// group; `groups` maps list positions or segments to groups.
//===----------------------------------------------------------------------===//

#include "Lerp.h"
#include "ListArguments.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {
namespace {

/// Learning rates and other hyper-parameters of one op, by group.
struct Groups {
  ArrayRef<int64_t> ofPosition;
  SmallVector<double> lr;

  static Groups of(OpCall &call) {
    Groups groups{call.integers("groups"), {}};
    if (call.has("lr_values"))
      groups.lr = call.numbers("lr_values");
    else
      for (const Tensor &tensor : call.tensors("lr"))
        groups.lr.push_back(tensor.at(0));
    return groups;
  }
};

/// Calls update(position or segment, begin, end, list index) for every run of
/// elements with the same hyper-parameters.
template <typename F>
LogicalResult forEachRun(OpCall &call, F update) {
  FailureOr<ListForm> form = ListForm::of(call);
  if (failed(form))
    return failure();
  ArrayRef<Tensor> params = call.tensors("self");
  if (form->chunk) {
    for (const SegmentRun &run : form->chunk->runs)
      update(run.segment, run.begin, run.end, 0);
    return success();
  }
  for (int64_t i = 0, e = params.size(); i < e; ++i)
    update(i, 0, params[i].numel(), i);
  return success();
}

/// Copies of a list, to be updated element by element; padding stays.
SmallVector<Tensor> copies(ArrayRef<Tensor> list) {
  SmallVector<Tensor> result;
  for (const Tensor &tensor : list)
    result.push_back(gatherStrided(tensor, tensor.shape(), contiguousStrides(tensor.shape())));
  return result;
}

LogicalResult checkLists(OpCall &call, ArrayRef<llvm::StringRef> names) {
  ArrayRef<Tensor> params = call.tensors("self");
  for (llvm::StringRef name : names) {
    ArrayRef<Tensor> list = call.tensors(name);
    if (list.empty())
      continue;
    if (list.size() != params.size())
      return call.error() << "the lists self and " << name << " have different lengths";
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].numel() != params[i].numel())
        return call.error() << "entry " << i << " of " << name << " has " << list[i].numel()
                            << " elements, its parameter " << params[i].numel();
  }
  return success();
}

template <bool decoupled>
LogicalResult evaluateAdam(OpCall &call) {
  if (failed(checkLists(call, {"grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"})))
    return failure();
  Groups groups = Groups::of(call);
  SmallVector<double> beta1s = call.numbers("beta1"), beta2s = call.numbers("beta2"),
                      decays = call.numbers("weight_decay"), epsilons = call.numbers("eps");
  bool amsgrad = call.flag("amsgrad");
  double sign = call.flag("maximize") ? -1 : 1;
  SmallVector<Tensor> params = copies(call.tensors("self")), averages = copies(call.tensors("exp_avgs")),
                      squares = copies(call.tensors("exp_avg_sqs")), largest = copies(call.tensors("max_exp_avg_sqs"));
  ArrayRef<Tensor> grads = call.tensors("grads"), steps = call.tensors("state_steps");
  LogicalResult status = forEachRun(call, [&](int64_t position, int64_t begin, int64_t end, int64_t i) {
    int64_t group = groups.ofPosition[position];
    double lr = groups.lr[group], beta1 = beta1s[group], beta2 = beta2s[group];
    double decay = decays[group], eps = epsilons[group];
    // The steps are a table in chunk form, else 0-dim tensors.
    double step = steps[i].at(steps[i].numel() == 1 ? 0 : position);
    double correction1 = 1 - std::pow(beta1, step);
    double correction2 = std::sqrt(1 - std::pow(beta2, step));
    for (int64_t e = begin; e < end; ++e) {
      double &p = params[i].realData()[e], &m = averages[i].realData()[e];
      double &v = squares[i].realData()[e], g = sign * grads[i].reals()[e];
      if (decoupled)
        p *= 1 - lr * decay;
      else
        g += decay * p;
      m = lerp(m, g, 1 - beta1);
      v = beta2 * v + (1 - beta2) * g * g;
      double second = v;
      if (amsgrad)
        second = largest[i].realData()[e] = std::max(largest[i].reals()[e], v);
      p -= lr / correction1 * m / (std::sqrt(second) / correction2 + eps);
    }
  });
  if (failed(status))
    return failure();
  for (SmallVector<Tensor> *list : {&params, &averages, &squares, &largest})
    for (Tensor &tensor : *list)
      call.result(std::move(tensor));
  return success();
}

LogicalResult evaluateSgd(OpCall &call) {
  if (failed(checkLists(call, {"grads", "momentum_buffer_list"})))
    return failure();
  Groups groups = Groups::of(call);
  SmallVector<double> decays = call.numbers("weight_decay"), momenta = call.numbers("momentum"),
                      dampenings = call.numbers("dampening");
  bool nesterov = call.flag("nesterov"), first = call.flag("is_first_step");
  double sign = call.flag("maximize") ? -1 : 1;
  SmallVector<Tensor> params = copies(call.tensors("self")), buffers = copies(call.tensors("momentum_buffer_list"));
  ArrayRef<Tensor> grads = call.tensors("grads");
  LogicalResult status = forEachRun(call, [&](int64_t position, int64_t begin, int64_t end, int64_t i) {
    int64_t group = groups.ofPosition[position];
    double momentum = momenta[group], dampening = dampenings[group];
    for (int64_t e = begin; e < end; ++e) {
      double &p = params[i].realData()[e];
      double g = sign * grads[i].reals()[e] + decays[group] * p;
      if (!buffers.empty() && momentum != 0) {
        double &b = buffers[i].realData()[e];
        b = first ? g : momentum * b + (1 - dampening) * g;
        g = nesterov ? g + momentum * b : b;
      }
      p -= groups.lr[group] * g;
    }
  });
  if (failed(status))
    return failure();
  for (SmallVector<Tensor> *list : {&params, &buffers})
    for (Tensor &tensor : *list)
      call.result(std::move(tensor));
  return success();
}

} // namespace

void registerFusedOptimizers(EvaluatorRegistry &r) {
  r.add("aten._fused_adam", evaluateAdam<false>);
  r.add("aten._fused_adamw", evaluateAdam<true>);
  r.add("aten._fused_sgd", evaluateSgd);
}

} // namespace spmd::interp
