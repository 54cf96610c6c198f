//===- NormalizeActivations.cpp - Activations that are several ops --------===//

#include "Normalize.h"

using namespace mlir;
using namespace spmd;

/// The output; nobody but the backward reads the buffer, and that computes it again.
static LogicalResult emitLogSigmoid(Emitter &emitter, Call &call, Results &results) {
  if (call.resultTypes.size() != 2 || !call.resultTypes[1])
    return emitter.error("'") << call.op << "' lacks a result";
  RankedTensorType type = call.resultTypes[0], buffer = call.resultTypes[1];
  results.push_back(emitter.createValue("log_sigmoid_forward", call.value("self"), {}, type));
  results.push_back(emitter.full(buffer, emitter.builder.getF64FloatAttr(0.0)));
  return success();
}

/// The two halves of `self` along its dim `dim`; null when it has none.
static std::pair<Value, Value> halves(Emitter &emitter, Call &call, int64_t &dim) {
  Value self = call.value("self");
  RankedTensorType type = typeOf(self);
  dim = wrapDim(call.integer("dim", -1), type.getRank());
  if (dim < 0 || dim >= type.getRank())
    return {};
  int64_t half = type.getDimSize(dim) / 2;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = half;
  auto slice = [&](int64_t start) {
    Builder &b = emitter.builder;
    return emitter.createValue("slice.Tensor", self,
                               {emitter.named("dim", b.getI64IntegerAttr(dim)),
                                emitter.named("end", b.getI64IntegerAttr(start + half)),
                                emitter.named("start", b.getI64IntegerAttr(start)),
                                emitter.named("step", b.getI64IntegerAttr(1))},
                               type.clone(shape));
  };
  Value first = slice(0);
  return {first, slice(half)};
}

/// a * sigmoid(b), of the halves a and b.
static LogicalResult emitGlu(Emitter &emitter, Call &call, Results &results) {
  int64_t dim = 0;
  auto [a, b] = halves(emitter, call, dim);
  if (!a)
    return emitter.error("'") << call.op << "' of dimension " << dim;
  Value gate = emitter.createValue("sigmoid", b, {}, typeOf(b));
  results.push_back(emitter.createValue("mul.Tensor", {a, gate}, {}, typeOf(a)));
  return success();
}

static LogicalResult emitGluBackward(Emitter &emitter, Call &call, Results &results) {
  int64_t dim = 0;
  auto [a, b] = halves(emitter, call, dim);
  if (!a)
    return emitter.error("'") << call.op << "' of dimension " << dim;
  Value grad = call.value("grad_output"), gate = emitter.createValue("sigmoid", b, {}, typeOf(b));
  Value gradA = emitter.createValue("mul.Tensor", {grad, gate}, {}, typeOf(a));
  Value gradGate = emitter.createValue("mul.Tensor", {grad, a}, {}, typeOf(a));
  Value gradB = emitter.createValue("sigmoid_backward", {gradGate, gate}, {}, typeOf(b));
  results.push_back(emitter.createValue("cat", {gradA, gradB},
                                        emitter.named("dim", emitter.builder.getI64IntegerAttr(dim)),
                                        call.resultTypes[0]));
  return success();
}

/// Gradients of operand and weight, which is of the operand's shape or broadcasts to it.
static LogicalResult emitPreluBackward(Emitter &emitter, Call &call, Results &results) {
  Value grad = call.value("grad_output"), self = call.value("self"), weight = call.value("weight");
  RankedTensorType type = typeOf(self);
  Value isPositive = emitter.createValue("gt.Scalar", self,
                                         emitter.named("other", emitter.builder.getI64IntegerAttr(0)),
                                         type.clone(emitter.builder.getI1Type()));
  auto zero = emitter.full(RankedTensorType::get({}, type.getElementType()), emitter.builder.getF64FloatAttr(0.0));
  Value scaled = emitter.createValue("mul.Tensor", {weight, grad}, {}, type);
  Value product = emitter.createValue("mul.Tensor", {self, grad}, {}, type);
  results.push_back(emitter.createValue("where.self", {isPositive, grad, scaled}, {}, type));
  results.push_back(emitter.createValue("where.self", {isPositive, zero, product}, {}, type));
  return success();
}

/// Without training the slope is the middle of the range.
static LogicalResult emitRrelu(Emitter &emitter, Call &call, Results &results) {
  if (call.boolean("training"))
    return emitter.error("'") << call.op << "' in training draws random slopes, which is not supported";
  for (StringRef name : {"lower", "upper"})
    if (BoundArg *arg = call.find(name); !arg || !arg->isNumber())
      return emitter.error("argument '") << name << "' of '" << call.op << "' must be a number";
  double slope = (call.find("lower")->number() + call.find("upper")->number()) / 2;
  bool isBackward = call.op == "rrelu_with_noise_backward";
  SmallVector<Value> operands = {call.value("self")};
  SmallVector<NamedAttribute> attrs = {emitter.named("negative_slope", emitter.builder.getF64FloatAttr(slope))};
  if (isBackward) {
    operands.insert(operands.begin(), call.value("grad_output"));
    attrs.push_back(emitter.named("self_is_result", emitter.builder.getBoolAttr(call.boolean("self_is_result"))));
  }
  RankedTensorType type = call.resultTypes[0];
  results.push_back(emitter.createValue(isBackward ? "leaky_relu_backward" : "leaky_relu", operands, attrs, type));
  if (!isBackward && call.resultTypes.size() == 2) // the noise, which nobody draws
    results.push_back(call.value("noise"));
  return success();
}

void spmd::normalizeActivations(NormalizerTable &table) {
  table["log_sigmoid_forward"] = {&emitLogSigmoid, {"self"}};
  table["glu"] = {&emitGlu, {"self"}};
  table["glu_backward"] = {&emitGluBackward, {"grad_output", "self"}};
  table["_prelu_kernel_backward"] = {&emitPreluBackward, {"grad_output", "self", "weight"}};
  table["rrelu_with_noise"] = {&emitRrelu, {"self"}};
  table["rrelu_with_noise_backward"] = {&emitRrelu, {"grad_output", "self"}};
}
