//===- Views.cpp - reshapes, permutations, broadcasts ---------------------===//

#include "spmd/Interpreter/Evaluator.h"

using namespace mlir;

namespace spmd::interp {

static LogicalResult evaluateView(OpCall &call) {
  const Tensor &self = call.tensor("self");
  ShapeRef shape = call.integers("size");
  if (numElements(shape) != self.numel())
    return call.error() << "view of " << self.numel() << " elements as " << numElements(shape);
  call.result(self.reshaped(shape));
  return success();
}

static LogicalResult evaluateUnsqueeze(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(self.shape());
  shape.insert(shape.begin() + call.integer("dim"), 1);
  call.result(self.reshaped(shape));
  return success();
}

static LogicalResult evaluateSqueeze(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(self.shape());
  if (self.rank() > 0) {
    int64_t dim = call.integer("dim");
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
    shape.push_back(self.dim(dim));
    strides.push_back(own[dim]);
  }
  call.result(gatherStrided(self, shape, strides));
  return success();
}

static LogicalResult evaluateExpand(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(call.integers("size"));
  if (broadcastShapes(self.shape(), shape) != shape)
    return call.error() << "sizes to expand to do not fit the operand";
  call.result(broadcastTo(self, shape));
  return success();
}

static LogicalResult evaluateFlip(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape strides = contiguousStrides(self.shape());
  int64_t offset = 0;
  for (int64_t dim : call.integers("dims")) {
    offset += (self.dim(dim) - 1) * strides[dim];
    strides[dim] = -strides[dim];
  }
  call.result(gatherStrided(self, self.shape(), strides, offset));
  return success();
}

void registerViews(EvaluatorRegistry &r) {
  r.add("aten.view", evaluateView);
  r.add("aten.unsqueeze", evaluateUnsqueeze);
  r.add("aten.squeeze.dim", evaluateSqueeze);
  r.add("aten.permute", evaluatePermute);
  r.add("aten.expand", evaluateExpand);
  r.add("aten.flip", evaluateFlip);
  r.add("aten.clone", [](OpCall &call) {
    call.result(call.tensor("self"));
    return success();
  });
}

} // namespace spmd::interp
