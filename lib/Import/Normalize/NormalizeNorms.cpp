//===- NormalizeNorms.cpp - Batch and group norm as arithmetic ------------===//
//
// [Note: batch norm]
// Batch statistics are sums over the batch divided by the global count, so that a sharded batch gives those of the
// whole batch with one message for the two sums. They are summed in f64, as PyTorch does on the CPU: then the variance
// of f32 values as mean of squares minus square of the mean loses nothing, whatever the mean is. Values that are f64
// themselves have no wider type: they are centered first, for one more message.
//
// Group norm is a layer norm of each group, then a scale and a shift per channel. Weight norm and softmax of rows that
// are masked throughout are here too.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "Normalize.h"

using namespace mlir;
using namespace spmd;

/// All dims but the channels'.
static SmallVector<int64_t> batchDims(RankedTensorType type) {
  SmallVector<int64_t> dims{0};
  for (int64_t dim = 2; dim < type.getRank(); ++dim)
    dims.push_back(dim);
  return dims;
}

/// A value per channel, shaped to broadcast against `type`.
static Value perChannel(Emitter &emitter, Value value, RankedTensorType type) {
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[1] = typeOf(value).getNumElements();
  return emitter.view(value, shape);
}

namespace {
/// Mean and 1 / sqrt(variance + eps) per channel, in f64 and in the compute type.
struct Statistics {
  Value mean, variance, invstd;
};
} // namespace

static Statistics fromRunning(Arithmetic &a, Call &call, double eps) {
  Value variance = call.value("running_var");
  return {call.value("running_mean"), variance, a.unary("rsqrt", a.add(variance, eps))};
}

static Statistics fromBatch(Emitter &emitter, Value input, double eps) {
  RankedTensorType type = typeOf(input);
  Arithmetic wide(emitter, emitter.builder.getF64Type());
  SmallVector<int64_t> dims = batchDims(type);
  auto count = static_cast<double>(type.getNumElements() / type.getDimSize(1));
  Value mean = wide.div(wide.sum(input, dims), count);
  Value variance;
  if (type.getElementType().isF64()) {
    Value centered = wide.sub(input, perChannel(emitter, mean, type));
    variance = wide.div(wide.sum(wide.mul(centered, centered), dims), count);
  } else {
    Value squares = wide.div(wide.sum(wide.mul(input, input), dims), count);
    variance = wide.clamp(wide.sub(squares, wide.mul(mean, mean)), 0, std::nullopt);
  }
  return {mean, variance, wide.unary("rsqrt", wide.add(variance, eps))};
}

/// native_batch_norm; in training with running statistics, these are results 3 and 4.
static LogicalResult emitBatchNorm(Emitter &emitter, Call &call, Results &results) {
  Value input = call.value("input"), weight = call.value("weight"), bias = call.value("bias");
  RankedTensorType type = typeOf(input);
  if (type.getRank() < 2 || call.resultTypes.size() < 3 || type.getNumElements() == 0)
    return emitter.error("'") << call.op << "' needs a batch and a channel dimension and three results, has " << type;
  bool training = call.boolean("training");
  double eps = call.number("eps", 0);
  Arithmetic a(emitter, Arithmetic::computeType(type.getElementType()));
  if (!training && (!call.value("running_mean") || !call.value("running_var")))
    return emitter.error("'") << call.op << "' needs running statistics outside of training";
  Statistics s = training ? fromBatch(emitter, input, eps) : fromRunning(a, call, eps);

  Value centered = a.sub(input, perChannel(emitter, s.mean, type));
  Value scale = weight ? a.mul(s.invstd, weight) : s.invstd;
  Value out = a.mul(centered, perChannel(emitter, scale, type));
  if (bias)
    out = a.add(out, perChannel(emitter, bias, type));
  results.push_back(emitter.cast(out, call.resultTypes[0].getElementType()));
  for (auto [result, saved] : {std::pair(1, s.mean), std::pair(2, s.invstd)}) {
    RankedTensorType wanted = call.resultTypes[result];
    // Outside of training PyTorch saves nothing: an empty tensor that nobody reads.
    bool isSaved = wanted && wanted.getNumElements() == typeOf(saved).getNumElements();
    results.push_back(isSaved   ? emitter.cast(saved, wanted.getElementType())
                      : wanted ? emitter.full(wanted, emitter.builder.getF64FloatAttr(0))
                               : Value());
  }
  if (call.resultTypes.size() == 3)
    return success();

  double momentum = call.number("momentum", 0);
  auto count = static_cast<double>(type.getNumElements() / type.getDimSize(1));
  Arithmetic wide(emitter, emitter.builder.getF64Type());
  Value unbiased = wide.mul(s.variance, count / std::max(count - 1, 1.0));
  for (auto [name, batch] : {std::pair("running_mean", s.mean), std::pair("running_var", unbiased)}) {
    Value running = call.value(name);
    Type own = typeOf(running).getElementType();
    Arithmetic r(emitter, own);
    results.push_back(r.add(r.mul(running, 1 - momentum), r.mul(batch, momentum)));
  }
  return success();
}

static LogicalResult emitBatchNormBackward(Emitter &emitter, Call &call, Results &results) {
  Value input = call.value("input"), grad = call.value("grad_out"), weight = call.value("weight");
  RankedTensorType type = typeOf(input);
  Arithmetic a(emitter, Arithmetic::computeType(type.getElementType()));
  bool training = call.boolean("train");
  Statistics s;
  if (!call.value(training ? "save_mean" : "running_mean") || !call.value(training ? "save_invstd" : "running_var") ||
      type.getRank() < 2 || type.getNumElements() == 0)
    return emitter.error("'") << call.op << "' needs a batch, channels and their statistics";
  if (training)
    s = {call.value("save_mean"), {}, call.value("save_invstd")};
  else
    s = fromRunning(a, call, call.number("eps", 0));
  auto channels = [&](Value value) { return perChannel(emitter, value, type); };
  auto count = static_cast<double>(type.getNumElements() / type.getDimSize(1));
  SmallVector<int64_t> dims = batchDims(type);

  Value normalized = a.mul(a.sub(input, channels(s.mean)), channels(s.invstd));
  Value sum = a.sum(grad, dims), product = a.sum(a.mul(grad, normalized), dims);
  Value scale = weight ? a.mul(s.invstd, weight) : s.invstd;
  if (RankedTensorType wanted = call.resultTypes[0]) {
    Value centered = grad;
    if (training) {
      // Both sums are there before either is used, so that they go in one message.
      Value mean = channels(a.div(sum, count)), meanProduct = channels(a.div(product, count));
      centered = a.sub(a.sub(grad, mean), a.mul(normalized, meanProduct));
    }
    results.push_back(emitter.cast(a.mul(centered, channels(scale)), wanted.getElementType()));
  } else {
    results.push_back({});
  }
  for (auto [result, value] : {std::pair(1, product), std::pair(2, sum)}) {
    RankedTensorType wanted = call.resultTypes[result];
    results.push_back(wanted ? emitter.cast(value, wanted.getElementType()) : Value());
  }
  return success();
}

namespace {
/// An input as rows, each the elements of one group.
struct Groups {
  int64_t batch, groups, elements;

  Groups(Call &call)
      : batch(call.integer("N", 1)), groups(std::max<int64_t>(call.integer("group", 1), 1)),
        elements(call.integer("C", 1) * call.integer("HxW", 1) / groups) {}
  SmallVector<int64_t> rows() const { return {batch, groups, elements}; }
  SmallVector<int64_t> statistics() const { return {batch, groups, 1}; }
};
} // namespace

/// [batch, channels, elements of a plane].
static SmallVector<int64_t> planes(Call &call) {
  return {call.integer("N", 1), call.integer("C", 1), call.integer("HxW", 1)};
}

static LogicalResult emitGroupNorm(Emitter &emitter, Call &call, Results &results) {
  Value input = call.value("input");
  RankedTensorType type = typeOf(input);
  Groups g(call);
  Type compute = Arithmetic::computeType(type.getElementType());
  Builder &b = emitter.builder;
  auto rows = RankedTensorType::get(g.rows(), compute), statistics = RankedTensorType::get(g.statistics(), compute);
  Operation *norm =
      emitter.create("native_layer_norm", emitter.view(emitter.cast(input, compute), g.rows()),
                     {emitter.named("normalized_shape", b.getDenseI64ArrayAttr({g.elements})),
                      emitter.named("eps", b.getF64FloatAttr(call.number("eps", 0))),
                      emitter.named("operandSegmentSizes", b.getDenseI32ArrayAttr({1, 0, 0}))},
                     {rows, statistics, statistics});
  Arithmetic a(emitter, compute);
  SmallVector<int64_t> shape = planes(call);
  auto planeType = RankedTensorType::get(shape, compute);
  Value out = emitter.view(norm->getResult(0), shape);
  if (Value weight = call.value("weight"))
    out = a.mul(out, perChannel(emitter, weight, planeType));
  if (Value bias = call.value("bias"))
    out = a.add(out, perChannel(emitter, bias, planeType));
  results.push_back(emitter.cast(emitter.view(out, type.getShape()), type.getElementType()));
  for (int i : {1, 2})
    results.push_back(emitter.cast(emitter.view(norm->getResult(i), {g.batch, g.groups}),
                                   call.resultTypes[i].getElementType()));
  return success();
}

static LogicalResult emitGroupNormBackward(Emitter &emitter, Call &call, Results &results) {
  Value input = call.value("input"), weight = call.value("weight");
  RankedTensorType type = typeOf(input);
  Groups g(call);
  Type compute = Arithmetic::computeType(type.getElementType());
  Arithmetic a(emitter, compute);
  Builder &b = emitter.builder;
  SmallVector<int64_t> shape = planes(call);
  auto planeType = RankedTensorType::get(shape, compute);
  Value grad = emitter.view(emitter.cast(call.value("grad_out"), compute), shape);
  Value rows = emitter.view(emitter.cast(input, compute), g.rows());
  Value mean = emitter.view(emitter.cast(call.value("mean"), compute), g.statistics());
  Value rstd = emitter.view(emitter.cast(call.value("rstd"), compute), g.statistics());
  if (RankedTensorType wanted = call.resultTypes[0]) {
    Value scaled = weight ? a.mul(grad, perChannel(emitter, weight, planeType)) : grad;
    Value gradRows = emitter.createValue(
        "native_layer_norm_backward", {emitter.view(scaled, g.rows()), rows, mean, rstd},
        {emitter.named("normalized_shape", b.getDenseI64ArrayAttr({g.elements})),
         emitter.named("output_mask", b.getDenseBoolArrayAttr({true, false, false})),
         emitter.named("operandSegmentSizes", b.getDenseI32ArrayAttr({1, 1, 1, 1, 0, 0})),
         emitter.named("resultSegmentSizes", b.getDenseI32ArrayAttr({1, 0, 0}))},
        RankedTensorType::get(g.rows(), compute));
    results.push_back(emitter.cast(emitter.view(gradRows, type.getShape()), wanted.getElementType()));
  } else {
    results.push_back({});
  }
  Value normalized = emitter.view(a.mul(a.sub(rows, mean), rstd), shape);
  for (auto [result, term] : {std::pair(1, true), std::pair(2, false)}) {
    RankedTensorType wanted = call.resultTypes[result];
    Value summed = wanted ? a.sum(term ? a.mul(grad, normalized) : grad, {0, 2}) : Value();
    results.push_back(wanted ? emitter.cast(summed, wanted.getElementType()) : Value());
  }
  return success();
}

/// Dims of a weight that the norm of each slice along `dim` is over.
static SmallVector<int64_t> sliceDims(Value weight, int64_t dim) {
  SmallVector<int64_t> dims;
  for (int64_t other = 0, rank = typeOf(weight).getRank(); other < rank; ++other)
    if (other != wrapDim(dim, rank))
      dims.push_back(other);
  return dims;
}

/// v * (g / |v|), and the norms.
static LogicalResult emitWeightNorm(Emitter &emitter, Call &call, Results &results) {
  Value v = call.value("v"), g = call.value("g");
  Type element = typeOf(v).getElementType();
  Arithmetic a(emitter, Arithmetic::computeType(element));
  Value norms = a.unary("sqrt", a.sum(a.mul(v, v), sliceDims(v, call.integer("dim", 0)), /*keepDims=*/true));
  results.push_back(emitter.cast(a.mul(v, a.div(g, norms)), element));
  results.push_back(emitter.cast(norms, call.resultTypes[1].getElementType()));
  return success();
}

/// With p the sums of grad * v: (g / norm) (grad - v p / norm^2), and p / norm.
static LogicalResult emitWeightNormBackward(Emitter &emitter, Call &call, Results &results) {
  Value grad = call.value("grad_w"), v = call.value("saved_v"), g = call.value("saved_g"),
        norms = call.value("saved_norms");
  Type element = typeOf(v).getElementType();
  Arithmetic a(emitter, Arithmetic::computeType(element));
  Value products = a.sum(a.mul(grad, v), sliceDims(v, call.integer("dim", 0)), /*keepDims=*/true);
  Value along = a.mul(v, a.div(products, a.mul(norms, norms)));
  results.push_back(emitter.cast(a.mul(a.div(g, norms), a.sub(grad, along)), element));
  results.push_back(emitter.cast(a.div(products, norms), call.resultTypes[1].getElementType()));
  return success();
}

/// softmax that gives zeros where a row is -inf throughout.
static LogicalResult emitSafeSoftmax(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Value self = emitter.cast(call.value("self"), type.getElementType());
  int64_t dim = wrapDim(call.integer("dim", -1), type.getRank());
  Builder &b = emitter.builder;
  Value softmax = emitter.createValue(
      "_softmax", self,
      {emitter.named("dim", b.getI64IntegerAttr(dim)), emitter.named("half_to_float", b.getBoolAttr(false))}, type);
  SmallVector<int64_t> kept(type.getShape());
  kept[dim] = 1;
  Value largest = emitter.createValue(
      "amax", self,
      {emitter.named("dim", b.getDenseI64ArrayAttr({dim})), emitter.named("keepdim", b.getBoolAttr(true))},
      type.clone(kept));
  Value isMasked = emitter.createValue(
      "eq.Scalar", largest, emitter.named("other", b.getF64FloatAttr(-std::numeric_limits<double>::infinity())),
      RankedTensorType::get(kept, b.getI1Type()));
  results.push_back(emitter.createValue("masked_fill.Scalar", {softmax, isMasked},
                                        emitter.named("value", b.getF64FloatAttr(0)), type));
  return success();
}

/// What F.normalize(..., out=) of spectral norm writes.
static LogicalResult emitDivOut(Emitter &emitter, Call &call, Results &results) {
  Arithmetic a(emitter, call.resultTypes[0].getElementType());
  results.push_back(emitter.expand(a.div(call.value("self"), call.value("other")), call.resultTypes[0].getShape()));
  return success();
}

void spmd::normalizeNorms(NormalizerTable &table) {
  for (StringRef op : {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit.no_stats"})
    table[op] = {&emitBatchNorm, {"input"}, 1};
  table["native_batch_norm_backward"] = {&emitBatchNormBackward, {"grad_out", "input"}, 3, /*masksResults=*/true};
  table["native_group_norm"] = {&emitGroupNorm, {"input"}, 3};
  table["native_group_norm_backward"] = {
      &emitGroupNormBackward, {"grad_out", "input", "mean", "rstd"}, 3, /*masksResults=*/true};
  table["div"] = {&emitDivOut, {"self", "other"}}; // div.out without its out
  table["_weight_norm_interface"] = {&emitWeightNorm, {"v", "g"}, 2};
  table["_weight_norm_interface_backward"] = {
      &emitWeightNormBackward, {"grad_w", "saved_v", "saved_g", "saved_norms"}, 2};
  table["_safe_softmax"] = {&emitSafeSoftmax, {"self"}};
}
