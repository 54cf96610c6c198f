//===- NormalizeWindows.cpp - Convolutions and max pools, spelled out -----===//

#include "Arithmetic.h"
#include "Normalize.h"

#include "dialects/Aten/Window.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

/// Makes argument `name` a list of `rank` numbers: one stands for all, none for `otherwise`.
static void spellOut(Call &call, StringRef name, size_t rank, ArrayRef<int64_t> otherwise) {
  SmallVector<int64_t> list;
  if (BoundArg *arg = call.find(name)) {
    if (arg->literal.kind == Kind::integer)
      list.push_back(arg->literal.integer);
    else
      list.append(arg->literal.integers.begin(), arg->literal.integers.end());
  }
  if (list.empty())
    list.append(otherwise.begin(), otherwise.end());
  if (!list.empty())
    list.resize(rank, list.front());
  setIntegers(call, name, list);
}

static LogicalResult emitConvolution(Emitter &emitter, Call &call, Results &results) {
  size_t rank = typeOf(call.value("weight")).getRank() - 2;
  for (StringRef name : {"stride", "dilation"})
    spellOut(call, name, rank, {1});
  for (StringRef name : {"padding", "output_padding"})
    spellOut(call, name, rank, {0});
  return emitSameOp(emitter, call, results);
}

/// Runs the op on a batch of one when there is no batch dimension.
static LogicalResult emitBatched(Emitter &emitter, Call &call, Results &results, int64_t rank,
                                 ArrayRef<StringRef> values) {
  if (typeOf(call.value(values.front())).getRank() == rank)
    return emitSameOp(emitter, call, results);
  auto withBatch = [](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), 1);
    return type.clone(shape);
  };
  for (StringRef name : values) {
    BoundArg *arg = call.find(name);
    arg->values[0] = emitter.view(arg->values[0], withBatch(typeOf(arg->values[0])).getShape());
  }
  SmallVector<RankedTensorType> wanted = call.resultTypes;
  for (RankedTensorType &type : call.resultTypes)
    type = withBatch(type);
  LogicalResult emitted = emitSameOp(emitter, call, results);
  call.resultTypes = wanted;
  if (succeeded(emitted))
    for (auto [result, type] : llvm::zip_equal(results, wanted))
      result = emitter.view(result, type.getShape());
  return emitted;
}

static LogicalResult emitMaxPool(Emitter &emitter, Call &call, Results &results) {
  bool backward = StringRef(call.op).ends_with("_backward");
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  spellOut(call, "kernel_size", rank, {});
  spellOut(call, "stride", rank, call.find("kernel_size")->literal.integers);
  spellOut(call, "padding", rank, {0});
  spellOut(call, "dilation", rank, {1});
  int64_t dims = static_cast<int64_t>(rank) + 2;
  if (backward)
    return emitBatched(emitter, call, results, dims, {"self", "grad_output", "indices"});
  return emitBatched(emitter, call, results, dims, {"self"});
}

/// Where windows tile the image, a max pool of windows of that size.
static LogicalResult emitAdaptiveMaxPool(Emitter &emitter, Call &call, Results &results) {
  StringRef op = call.op;
  bool backward = op.ends_with("_backward");
  size_t rank = op.contains("3d") ? 3 : 2;
  Value output = call.value("grad_output");
  ArrayRef<int64_t> in = typeOf(call.value("self")).getShape().take_back(rank);
  ArrayRef<int64_t> out = (output ? typeOf(output) : call.resultTypes[0]).getShape().take_back(rank);
  SmallVector<int64_t> kernel;
  for (auto [size, count] : llvm::zip_equal(in, out)) {
    if (size % count != 0)
      return emitter.error("'") << call.op << "' of size [" << in << "] to [" << out
                                << "] is not supported: the windows are not of one size";
    kernel.push_back(size / count);
  }
  std::string dims = rank == 3 ? "3d" : "2d";
  call.op = "max_pool" + dims + "_with_indices" + (backward ? "_backward" : "");
  setIntegers(call, "kernel_size", kernel);
  return emitMaxPool(emitter, call, results);
}

static LogicalResult emitColumns(Emitter &emitter, Call &call, Results &results) {
  for (StringRef name : {"kernel_size", "stride", "dilation", "output_size"})
    if (call.find(name))
      spellOut(call, name, 2, {1});
  spellOut(call, "padding", 2, {0});
  return emitBatched(emitter, call, results, call.op == "im2col" ? 4 : 3, {"self"});
}

/// PyTorch's op for GPUs is ours by another name; its default eps is the type's epsilon.
static LogicalResult emitRmsNorm(Emitter &emitter, Call &call, Results &results) {
  BoundArg *eps = call.find("eps");
  if (eps && eps->isNone()) {
    auto type = cast<FloatType>(Arithmetic::computeType(typeOf(call.value("input")).getElementType()));
    eps->literal.kind = Kind::real;
    eps->literal.real = type.isF64() ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  }
  call.op = StringRef(call.op).ends_with("_backward") ? "rms_norm_backward" : "rms_norm";
  return emitSameOp(emitter, call, results);
}

void spmd::addWindowNormalizers(NormalizerTable &table) {
  for (std::string tail : {"", "_backward"}) {
    table["convolution" + tail] = {&emitConvolution, {"input", "weight"}, tail.empty() ? 1U : 3U, !tail.empty()};
    SmallVector<StringRef, 2> tensors = {"self"};
    if (!tail.empty())
      tensors.append({"grad_output", "indices"});
    for (std::string dims : {"2d", "3d"}) {
      table["max_pool" + dims + "_with_indices" + tail] = {&emitMaxPool, tensors};
      table["adaptive_max_pool" + dims + tail] = {&emitAdaptiveMaxPool, tensors};
    }
  }
  table["im2col"] = {&emitColumns, {"self"}};
  table["col2im"] = {&emitColumns, {"self"}};
  table["rms_norm"] = table["_fused_rms_norm"] = {&emitRmsNorm, {"input"}, 2};
  table["_fused_rms_norm_backward"] = {&emitRmsNorm, {"input"}, 2, /*masksResults=*/true};
}
