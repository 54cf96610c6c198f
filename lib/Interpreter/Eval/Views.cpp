//===- Views.cpp - reshapes, permutations, broadcasts ---------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <numeric>

using namespace mlir;

namespace spmd::interp {

/// Sizes with at most one -1, which takes what is left of `numel`.
static Shape resolveSizes(ShapeRef sizes, int64_t numel) {
  Shape result(sizes);
  int64_t known = 1;
  for (int64_t size : sizes)
    known *= size == -1 ? 1 : size;
  for (int64_t &size : result)
    if (size == -1)
      size = known == 0 ? 0 : numel / known;
  return result;
}

static LogicalResult evaluateView(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape = resolveSizes(call.integers("size"), self.numel());
  if (numElements(shape) != self.numel())
    return call.error() << "view of " << self.numel() << " elements as " << numElements(shape);
  call.result(self.reshaped(shape));
  return success();
}

static LogicalResult evaluateUnsqueeze(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(self.shape());
  shape.insert(shape.begin() + call.dim("dim", self.rank() + 1), 1);
  call.result(self.reshaped(shape));
  return success();
}

static LogicalResult evaluateSqueeze(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(self.shape());
  if (self.rank() > 0) {
    int64_t dim = call.dim("dim", self.rank());
    if (shape[dim] == 1)
      shape.erase(shape.begin() + dim);
  }
  call.result(self.reshaped(shape));
  return success();
}

static LogicalResult evaluatePermute(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape own = contiguousStrides(self.shape()), shape, strides;
  for (int64_t dim : call.integers("dims")) {
    dim += dim < 0 ? self.rank() : 0;
    shape.push_back(self.dim(dim));
    strides.push_back(own[dim]);
  }
  call.result(gatherStrided(self, shape, strides));
  return success();
}

static LogicalResult evaluateExpand(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(call.integers("size"));
  int64_t lead = shape.size() - self.rank();
  for (int64_t i = 0; i < self.rank(); ++i)
    if (shape[lead + i] == -1)
      shape[lead + i] = self.dim(i);
  if (lead < 0 || broadcastShapes(self.shape(), shape) != shape)
    return call.error() << "sizes to expand to do not fit the operand";
  call.result(broadcastTo(self, shape));
  return success();
}

void registerViews(EvaluatorRegistry &r) {
  r.add("aten.view", evaluateView);
  r.add("aten.unsqueeze", evaluateUnsqueeze);
  r.add("aten.squeeze.dim", evaluateSqueeze);
  r.add("aten.permute", evaluatePermute);
  r.add("aten.expand", evaluateExpand);
}

} // namespace spmd::interp
