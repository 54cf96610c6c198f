//===- NormalizeFactories.cpp - Tensors out of numbers --------------------===//

#include "Normalize.h"

using namespace mlir;
using namespace spmd;

/// A number in the kind of the element type, as PyTorch fills with it.
static Attribute fillFor(Builder &builder, Type elementType, double value) {
  if (isa<FloatType>(elementType))
    return builder.getF64FloatAttr(value);
  if (elementType.isInteger(1))
    return builder.getBoolAttr(value != 0);
  return builder.getI64IntegerAttr(static_cast<int64_t>(value));
}

template <int value>
static LogicalResult emitFilled(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  results.push_back(emitter.full(type, fillFor(emitter.builder, type.getElementType(), value)));
  return success();
}

/// full and fill: a number, or a 0-dimensional tensor.
static LogicalResult emitFull(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  BoundArg *fill = call.find("fill_value");
  if (!fill)
    fill = call.find("value");
  if (fill && fill->isValue()) {
    Value value = emitter.cast(fill->values[0], type.getElementType());
    results.push_back(emitter.expand(value, type.getShape()));
    return success();
  }
  if (!fill || !fill->isNumber())
    return emitter.error("'") << call.op << "' needs a number";
  Attribute number = emitter.scalar(fill->literal);
  if (isa<FloatType>(type.getElementType()) && fill->literal.kind != step::Arg::Kind::real)
    number = fillFor(emitter.builder, type.getElementType(), fill->number());
  results.push_back(emitter.full(type, number));
  return success();
}

static LogicalResult emitArange(Emitter &emitter, Call &call, Results &results) {
  auto number = [&](StringRef name, int64_t otherwise) -> Attribute {
    BoundArg *arg = call.find(name);
    if (!arg || arg->isNone())
      return emitter.builder.getI64IntegerAttr(otherwise);
    return arg->isNumber() ? emitter.scalar(arg->literal) : Attribute();
  };
  Attribute start = number("start", 0), end = number("end", 0), step = number("step", 1);
  if (!start || !end || !step)
    return emitter.error("'arange' needs numbers");
  results.push_back(emitter.createValue(
      "arange.start_step", {}, {emitter.named("start", start), emitter.named("end", end), emitter.named("step", step)},
      call.resultTypes[0]));
  return success();
}

void spmd::normalizeFactories(NormalizerTable &table) {
  // What is never written before it is read may be anything; zero is the same
  // in every run.
  for (StringRef op : {"zeros", "zeros_like", "new_zeros", "zero", "empty.memory_format", "empty_like", "new_empty",
                       "new_empty_strided", "empty_strided", "_efficientzerotensor"})
    table[op] = &emitFilled<0>;
  for (StringRef op : {"ones", "ones_like", "new_ones"})
    table[op] = &emitFilled<1>;
  for (StringRef op : {"full", "full_like", "new_full", "fill.Scalar", "fill.Tensor"})
    table[op] = &emitFull;
  for (StringRef op : {"arange", "arange.start", "arange.start_step"})
    table[op] = &emitArange;
}
