//===- NormalizeWindows.cpp - Convolutions and max pools, spelled out -----===//

#include "Arithmetic.h"
#include "Normalize.h"
#include "RowAccess.h"

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

namespace {

/// The windows of an adaptive pool along one dimension, each as long as the longest: a shorter one repeats its last
/// row, which does not change its maximum.
struct AdaptiveWindows {
  AdaptiveWindows(int64_t size, int64_t count) {
    auto begin = [&](int64_t i) { return i * size / count; };
    auto end = [&](int64_t i) { return ((i + 1) * size + count - 1) / count; };
    for (int64_t i = 0; i < count; ++i)
      length = std::max(length, end(i) - begin(i));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < length; ++j)
        rows.push_back(std::min(begin(i) + j, end(i) - 1));
  }

  int64_t length = 0;
  SmallVector<int64_t> rows; ///< count windows of `length`, one after the other
};

} // namespace

static Value emitNumbers(Emitter &emitter, ArrayRef<int64_t> numbers) {
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, emitter.builder.getI64Type());
  return emitter.createValue("constant", {}, emitter.named("value", DenseElementsAttr::get(type, numbers)), type);
}

/// Rows `numbers` of dimension `dim`.
static Value emitRows(Emitter &emitter, Value value, int64_t dim, ArrayRef<int64_t> numbers) {
  if (llvm::equal(numbers, llvm::seq<int64_t>(0, typeOf(value).getDimSize(dim))))
    return value;
  RowAccess access = getAccessOfRows(emitter, typeOf(value).getShape(), dim, emitNumbers(emitter, numbers), "max_pool");
  return access.gather(emitter, value);
}

/// Where windows have one size, a max pool of windows of that size; else that of an image in which they follow each
/// other, with the places it finds counted in the image as it is.
static LogicalResult emitAdaptiveMaxPool(Emitter &emitter, Call &call, Results &results) {
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  BoundArg *self = call.find("self");
  RankedTensorType type = typeOf(self->values[0]);
  ArrayRef<int64_t> in = type.getShape().take_back(rank), out = call.resultTypes[0].getShape().take_back(rank);
  SmallVector<AdaptiveWindows> all;
  SmallVector<int64_t> kernel;
  int64_t first = type.getRank() - static_cast<int64_t>(rank);
  bool isEven = true;
  for (auto [dim, size, count] : llvm::enumerate(in, out)) {
    if (size <= 0 || count <= 0)
      return emitter.error("'") << call.op << "' of size [" << in << "] to [" << out << "]";
    AdaptiveWindows windows(size, count);
    isEven &= windows.length * count == size;
    self->values[0] = emitRows(emitter, self->values[0], first + static_cast<int64_t>(dim), windows.rows);
    kernel.push_back(windows.length);
    all.push_back(std::move(windows));
  }
  call.op = "max_pool" + std::string(rank == 3 ? "3d" : "2d") + "_with_indices";
  setIntegers(call, "kernel_size", kernel);
  if (failed(emitMaxPool(emitter, call, results)))
    return failure();
  if (!isEven) {
    SmallVector<int64_t> places = {0};
    for (auto [size, windows] : llvm::zip(in, all)) {
      SmallVector<int64_t> further;
      for (int64_t place : places)
        for (int64_t row : windows.rows)
          further.push_back(place * size + row);
      places = std::move(further);
    }
    RowAccess access = getFlatAccess(emitter, results[1], static_cast<int64_t>(places.size()), "max_pool");
    results[1] = access.gather(emitter, emitNumbers(emitter, places));
  }
  return success();
}

/// `shape` with its last `rank` dimensions as one.
static SmallVector<int64_t> planes(ArrayRef<int64_t> shape, size_t rank) {
  SmallVector<int64_t> flat(shape.drop_back(rank));
  flat.push_back(ShapedType::getNumElements(shape.take_back(rank)));
  return flat;
}

/// A tensor of `type` with each element of `value` at its place in its plane, and zeros.
static Value emitPlaced(Emitter &emitter, RankedTensorType type, Value value, Value places, size_t rank, StringRef op,
                        StringRef kind) {
  SmallVector<int64_t> image = planes(type.getShape(), rank), pooled = planes(typeOf(value).getShape(), rank);
  RowAccess access = getAccessAlongDim(emitter, image, static_cast<int64_t>(image.size()) - 1,
                                       emitter.view(places, pooled), op);
  return emitter.view(access.scatter(emitter, Value(), emitter.view(value, pooled), image, kind), type.getShape());
}

/// Each gradient goes to the place of its maximum; where windows tile the image, as that of a max pool.
static LogicalResult emitAdaptiveMaxPoolBackward(Emitter &emitter, Call &call, Results &results) {
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  RankedTensorType type = call.resultTypes[0];
  Value grad = call.value("grad_output"), indices = call.value("indices");
  if (typeOf(grad).getShape() != typeOf(indices).getShape() || type.getRank() != typeOf(grad).getRank() ||
      type.getRank() < static_cast<int64_t>(rank) || type.getNumElements() == 0 || typeOf(grad).getNumElements() == 0)
    return emitter.error("'") << call.op << "' of gradients " << grad.getType() << " and places " << indices.getType();
  ArrayRef<int64_t> in = type.getShape().take_back(rank), out = typeOf(grad).getShape().take_back(rank);
  if (llvm::all_of(llvm::zip(in, out), [](auto sizes) { return std::get<0>(sizes) % std::get<1>(sizes) == 0; })) {
    SmallVector<int64_t> kernel;
    for (auto [size, count] : llvm::zip(in, out))
      kernel.push_back(size / count);
    call.op = "max_pool" + std::string(rank == 3 ? "3d" : "2d") + "_with_indices_backward";
    setIntegers(call, "kernel_size", kernel);
    return emitMaxPool(emitter, call, results);
  }
  results.push_back(emitPlaced(emitter, type, grad, indices, rank, "max_pool", "sum"));
  return success();
}

/// Zeros with each element at its place in its plane, as a max pool gives it.
static LogicalResult emitMaxUnpool(Emitter &emitter, Call &call, Results &results) {
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  RankedTensorType type = call.resultTypes[0];
  Value self = call.value("self"), indices = call.value("indices");
  if (typeOf(self).getShape() != typeOf(indices).getShape() || typeOf(self).getRank() != type.getRank() ||
      type.getRank() < static_cast<int64_t>(rank))
    return emitter.error("'") << call.op << "' of " << self.getType() << " and places " << indices.getType();
  results.push_back(emitPlaced(emitter, type, self, indices, rank, "max_unpool", "set"));
  return success();
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

void spmd::normalizeWindows(NormalizerTable &table) {
  for (std::string tail : {"", "_backward"}) {
    table["convolution" + tail] = {&emitConvolution, {"input", "weight"}, tail.empty() ? 1U : 3U, !tail.empty()};
    SmallVector<StringRef, 2> tensors = {"self"};
    if (!tail.empty())
      tensors.append({"grad_output", "indices"});
    for (std::string dims : {"2d", "3d"}) {
      table["max_pool" + dims + "_with_indices" + tail] = {&emitMaxPool, tensors};
      table["adaptive_max_pool" + dims + tail] = tail.empty() ? Normalization(&emitAdaptiveMaxPool, tensors, 2)
                                                              : Normalization(&emitAdaptiveMaxPoolBackward, tensors);
    }
  }
  for (StringRef op : {"max_unpool2d", "max_unpool3d"})
    table[op] = {&emitMaxUnpool, {"self", "indices"}};
  table["im2col"] = {&emitColumns, {"self"}};
  table["col2im"] = {&emitColumns, {"self"}};
  table["rms_norm"] = table["_fused_rms_norm"] = {&emitRmsNorm, {"input"}, 2};
  table["_fused_rms_norm_backward"] = {&emitRmsNorm, {"input"}, 2, /*masksResults=*/true};
}
