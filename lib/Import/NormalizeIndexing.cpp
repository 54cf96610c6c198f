//===- NormalizeIndexing.cpp - Reading and writing by number --------------===//

#include "Layouts.h"
#include "Normalize.h"
#include "RowAccess.h"

using namespace mlir;
using namespace spmd;

/// The corner of `value` that has `shape`; `dim` is left as it is.
static Value sliceCorner(Emitter &emitter, Value value, ArrayRef<int64_t> shape, int64_t dim) {
  for (auto [other, size] : llvm::enumerate(shape))
    if (static_cast<int64_t>(other) != dim)
      value = emitSlice(emitter, value, other, 0, size);
  return value;
}

/// `self` with `corner` in place of its first rows in every dimension.
static Value replaceCorner(Emitter &emitter, Value self, Value corner) {
  SmallVector<std::pair<Value, int64_t>> outer;
  for (auto [dim, size] : llvm::enumerate(typeOf(corner).getShape()))
    if (typeOf(self).getDimSize(dim) != size) {
      outer.push_back({self, dim});
      self = emitSlice(emitter, self, dim, 0, size);
    }
  for (auto [whole, dim] : llvm::reverse(outer))
    corner = emitReplace(emitter, whole, corner, dim, 0, typeOf(corner).getDimSize(dim));
  return corner;
}

static Value addNumber(Emitter &emitter, Value value, double number) {
  return emitter.createValue("add.Scalar", value, emitter.named("other", emitter.builder.getF64FloatAttr(number)),
                             typeOf(value));
}

/// Ops on 0-dimensional tensors are on one row.
static Value atLeastVector(Emitter &emitter, Value value) {
  return typeOf(value).getRank() == 0 ? emitter.view(value, {1}) : value;
}

namespace {

/// The tensor arguments of an op with a dim and an index, brought to one rank.
struct DimArguments {
  Value self, index;
  int64_t dim = 0;
};

} // namespace

static FailureOr<DimArguments> readDimArguments(Emitter &emitter, Call &call) {
  DimArguments arguments{atLeastVector(emitter, call.value("self")), atLeastVector(emitter, call.value("index")), 0};
  int64_t rank = typeOf(arguments.self).getRank();
  arguments.dim = wrapDim(call.integer("dim", 0), rank);
  if (arguments.dim < 0 || arguments.dim >= rank)
    return emitter.error("'") << call.op << "' of dimension " << arguments.dim << " of a tensor of rank " << rank;
  return arguments;
}

/// `value` has at least the sizes of `shape`, but for `dim`.
static LogicalResult checkCorner(Emitter &emitter, Call &call, Value value, ArrayRef<int64_t> shape, int64_t dim) {
  RankedTensorType type = typeOf(value);
  bool fits = type.getRank() == static_cast<int64_t>(shape.size());
  for (int64_t other = 0; fits && other < type.getRank(); ++other)
    fits = other == dim || shape[other] <= type.getDimSize(other);
  if (fits)
    return success();
  return emitter.error("'") << call.op << "' has an index of shape [" << shape << "] for " << type;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static LogicalResult emitGather(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  if (failed(checkCorner(emitter, call, self, typeOf(index).getShape(), dim)))
    return failure();
  self = sliceCorner(emitter, self, typeOf(index).getShape(), dim);
  RowAccess access = getAccessAlongDim(emitter, typeOf(self).getShape(), dim, index, call.op);
  results.push_back(emitter.view(access.gather(emitter, self), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitIndexSelect(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  RowAccess access = getAccessOfRows(emitter, typeOf(self).getShape(), dim, index, call.op);
  results.push_back(emitter.view(access.gather(emitter, self), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitTake(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self"), index = call.value("index");
  int64_t elements = typeOf(self).getNumElements();
  RowAccess access = getFlatAccess(emitter, index, elements, call.op);
  results.push_back(access.gather(emitter, emitter.view(self, {elements})));
  return success();
}

static LogicalResult emitIndex(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  BoundArg *indices = call.find("indices");
  if (!indices)
    return emitter.error("'index' has no index");
  FailureOr<IndexAccess> access = getIndexAccess(emitter, typeOf(self).getShape(), indices->values, "index");
  if (failed(access))
    return failure();
  if (!access->isView) {
    results.push_back(access->rows.gather(emitter, self));
    return success();
  }
  Value value = emitter.view(emitter.permute(self, access->rows.tablePermutation), access->viewed);
  results.push_back(emitter.permute(emitter.expand(value, access->expanded), access->permutation));
  return success();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// What an element becomes that is written to.
enum class Reduction { set, sum, prod, mean, amax, amin };

} // namespace

static std::optional<Reduction> parseReduction(StringRef name) {
  if (name == "sum" || name == "add")
    return Reduction::sum;
  if (name == "prod" || name == "multiply")
    return Reduction::prod;
  if (name == "mean")
    return Reduction::mean;
  if (name == "amax")
    return Reduction::amax;
  if (name == "amin")
    return Reduction::amin;
  return std::nullopt;
}

static Value scalarLike(Emitter &emitter, RankedTensorType type, double number) {
  Builder &b = emitter.builder;
  bool isFloat = isa<FloatType>(type.getElementType());
  Attribute attr = isFloat ? Attribute(b.getF64FloatAttr(number)) : b.getI64IntegerAttr(static_cast<int64_t>(number));
  return emitter.full(type.clone(ArrayRef<int64_t>()), attr);
}

/// The value that `reduction` starts from where self does not count.
static Value neutralFor(Emitter &emitter, RankedTensorType type, Reduction reduction) {
  if (reduction == Reduction::sum || reduction == Reduction::mean)
    return scalarLike(emitter, type, 0);
  if (reduction == Reduction::prod)
    return scalarLike(emitter, type, 1);
  bool isMax = reduction == Reduction::amax;
  if (isa<FloatType>(type.getElementType()))
    return scalarLike(emitter, type, isMax ? -INFINITY : INFINITY);
  unsigned bits = type.getElementTypeBitWidth();
  if (bits == 1)
    return emitter.full(type.clone(ArrayRef<int64_t>()), emitter.builder.getI64IntegerAttr(isMax ? 0 : 1));
  APInt bound = isMax ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits);
  return emitter.full(type.clone(ArrayRef<int64_t>()), emitter.builder.getI64IntegerAttr(bound.getSExtValue()));
}

static FailureOr<Value> emitWrite(Emitter &emitter, const RowAccess &access, Value self, Value src,
                                  Reduction reduction, bool includeSelf, StringRef op) {
  RankedTensorType type = typeOf(self);
  ArrayRef<int64_t> shape = type.getShape();
  if (reduction == Reduction::set)
    return access.scatter(emitter, isZero(self) ? Value() : self, src, shape, "set");
  if (reduction == Reduction::mean && !isa<FloatType>(type.getElementType()))
    return emitter.error("'") << op << "' of integers with reduce 'mean' is not supported";
  Value count;
  if (!includeSelf || reduction == Reduction::mean) {
    Value ones = emitter.expand(scalarLike(emitter, type, 1), typeOf(src).getShape());
    count = access.scatter(emitter, Value(), ones, shape, "sum");
  }
  if (!includeSelf) {
    Value isWritten = emitter.createValue(
        "gt.Scalar", count, emitter.named("other", emitter.builder.getI64IntegerAttr(0)),
        type.clone(emitter.builder.getI1Type()));
    self = emitter.createValue("where.self", {isWritten, neutralFor(emitter, type, reduction), self}, {}, type);
  }
  switch (reduction) {
  case Reduction::set:
    break;
  case Reduction::sum:
    return access.scatterSum(emitter, self, src);
  case Reduction::prod:
    return access.scatter(emitter, self, src, shape, "prod");
  case Reduction::amax:
    return access.scatter(emitter, self, src, shape, "amax");
  case Reduction::amin:
    return access.scatter(emitter, self, src, shape, "amin");
  case Reduction::mean: {
    Value sum = access.scatterSum(emitter, self, src);
    if (includeSelf)
      count = addNumber(emitter, count, 1);
    count = emitter.createValue("maximum", {count, scalarLike(emitter, type, 1)}, {}, type);
    return emitter.createValue("div.Tensor", {sum, count}, {}, type);
  }
  }
  llvm_unreachable("all reductions are handled");
}

static Reduction reductionOf(Call &call, bool &known) {
  StringRef op = call.op;
  known = true;
  if (op == "scatter_add" || op == "index_add")
    return Reduction::sum;
  BoundArg *reduce = call.find("reduce");
  if (!reduce || reduce->isNone())
    return Reduction::set;
  std::optional<Reduction> parsed = parseReduction(reduce->literal.string);
  known = parsed.has_value();
  return parsed.value_or(Reduction::set);
}

/// The tensor `name`, or a number of that name repeated, in the type of `self`.
static Value sourceLike(Emitter &emitter, Call &call, ArrayRef<StringRef> names, Value self,
                        ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(self);
  for (StringRef name : names) {
    BoundArg *arg = call.find(name);
    if (!arg)
      continue;
    if (arg->isValue()) {
      Value value = emitter.cast(arg->values[0], type.getElementType());
      return typeOf(value).getRank() == 0 ? emitter.expand(value, shape) : value;
    }
    if (arg->isNumber()) {
      double number = arg->literal.kind == step::Arg::Kind::real      ? arg->literal.real
                      : arg->literal.kind == step::Arg::Kind::boolean ? arg->literal.boolean
                                                                      : static_cast<double>(arg->literal.integer);
      return emitter.expand(scalarLike(emitter, type, number), shape);
    }
  }
  return {};
}

/// scatter and its like: src has the dimensions of the index, or more.
static LogicalResult emitScatter(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  bool known;
  Reduction reduction = reductionOf(call, known);
  ArrayRef<int64_t> shape = typeOf(index).getShape();
  Value src = sourceLike(emitter, call, {"src", "value"}, self, shape);
  if (!known || !src)
    return emitter.error("'") << call.op << "' has arguments that are not supported";
  src = atLeastVector(emitter, src);
  if (failed(checkCorner(emitter, call, self, shape, dim)) || failed(checkCorner(emitter, call, src, shape, -1)))
    return failure();
  src = sliceCorner(emitter, src, shape, -1);
  bool includeSelf = !call.find("include_self") || call.boolean("include_self");
  Value corner = sliceCorner(emitter, self, shape, dim);
  RowAccess access = getAccessAlongDim(emitter, typeOf(corner).getShape(), dim, index, call.op);
  FailureOr<Value> written = emitWrite(emitter, access, corner, src, reduction, includeSelf, call.op);
  if (failed(written))
    return failure();
  Value result = replaceCorner(emitter, self, *written);
  results.push_back(emitter.view(result, call.resultTypes[0].getShape()));
  return success();
}

/// index_add and its like: whole rows.
static LogicalResult emitIndexWrite(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  bool known;
  Reduction reduction = reductionOf(call, known);
  Ints shape(typeOf(self).getShape());
  shape[dim] = typeOf(index).getNumElements();
  Value src = sourceLike(emitter, call, {"source", "value"}, self, shape);
  if (!known || !src)
    return emitter.error("'") << call.op << "' has arguments that are not supported";
  if (typeOf(src).getNumElements() != ShapedType::getNumElements(shape))
    return emitter.error("'") << call.op << "' has source " << src.getType() << ", expected shape [" << shape << "]";
  src = emitter.view(src, shape);
  if (BoundArg *alpha = call.find("alpha"); alpha && alpha->isNumber()) {
    bool isOne = alpha->literal.kind == step::Arg::Kind::integer && alpha->literal.integer == 1;
    if (!isOne)
      src = emitter.createValue("mul.Scalar", src, emitter.named("other", emitter.scalar(alpha->literal)), typeOf(src));
  }
  bool includeSelf = !call.find("include_self") || call.boolean("include_self");
  RowAccess access = getAccessOfRows(emitter, typeOf(self).getShape(), dim, index, call.op);
  FailureOr<Value> written = emitWrite(emitter, access, self, src, reduction, includeSelf, call.op);
  if (failed(written))
    return failure();
  results.push_back(emitter.view(*written, call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitPut(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self"), index = call.value("index");
  int64_t elements = typeOf(self).getNumElements();
  RowAccess access = getFlatAccess(emitter, index, elements, call.op);
  if (typeOf(call.value("source")).getNumElements() != typeOf(index).getNumElements())
    return emitter.error("'put' has source ") << call.value("source").getType() << " for index " << index.getType();
  Value source = emitter.view(call.value("source"), typeOf(index).getShape());
  FailureOr<Value> written =
      emitWrite(emitter, access, emitter.view(self, {elements}), source,
                call.boolean("accumulate") ? Reduction::sum : Reduction::set, /*includeSelf=*/true, call.op);
  if (failed(written))
    return failure();
  results.push_back(emitter.view(*written, typeOf(self).getShape()));
  return success();
}

/// self[mask] = one value, or one row of values: positions do not matter.
static LogicalResult emitMaskedPut(Emitter &emitter, Call &call, ArrayRef<Value> indices, Results &results) {
  Value self = call.value("self"), values = call.value("values");
  RankedTensorType type = typeOf(self);
  auto *mask = llvm::find_if(indices, [](Value value) { return static_cast<bool>(value); });
  int64_t before = mask - indices.begin(), maskRank = typeOf(*mask).getRank();
  int64_t after = type.getRank() - before - maskRank;
  bool alone = llvm::count_if(indices, [](Value value) { return static_cast<bool>(value); }) == 1;
  // The values are broadcast to [before, selected elements, after].
  int64_t valuesRank = typeOf(values).getRank();
  bool isOnePerElement = valuesRank > after && typeOf(values).getDimSize(valuesRank - after - 1) != 1;
  if (!alone || after < 0 || isOnePerElement)
    return emitter.error("'index_put' writes one value per element that a mask selects; their number depends on "
                         "values, which cannot be compiled");
  Ints maskShape(typeOf(*mask).getShape());
  maskShape.append(after, 1);
  Ints valueShape(typeOf(values).getShape());
  if (valuesRank > after)
    valueShape.insert(valueShape.end() - after, maskRank - 1, 1);
  Value chosen = emitter.view(values, valueShape);
  if (call.boolean("accumulate")) {
    chosen = emitter.createValue("add.Tensor", {self, emitter.expand(chosen, type.getShape())}, {}, type);
  }
  results.push_back(
      emitter.createValue("where.self", {emitter.view(*mask, maskShape), chosen, self}, {}, type));
  return success();
}

static LogicalResult emitIndexPut(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self"), values = call.value("values");
  BoundArg *indices = call.find("indices");
  if (!indices)
    return emitter.error("'index_put' has no index");
  RankedTensorType type = typeOf(self);
  if (llvm::any_of(indices->values, [](Value v) { return v && typeOf(v).getElementType().isInteger(1); }))
    return emitMaskedPut(emitter, call, indices->values, results);
  FailureOr<IndexAccess> access = getIndexAccess(emitter, type.getShape(), indices->values, "index_put");
  if (failed(access))
    return failure();
  bool accumulate = call.boolean("accumulate");
  // Leading ones that the place does not have.
  Ints shape(typeOf(values).getShape());
  while (shape.size() > access->shape.size())
    shape.erase(shape.begin());
  Value src = emitter.expand(emitter.view(values, shape), access->shape);
  if (!access->isView) {
    FailureOr<Value> written = emitWrite(emitter, access->rows, self, src,
                                         accumulate ? Reduction::sum : Reduction::set, /*includeSelf=*/true, call.op);
    if (failed(written))
      return failure();
    results.push_back(*written);
    return success();
  }
  if (access->viewed != access->expanded)
    return emitter.error("'index_put' writes several values to each element");
  // Every element is written once.
  const RowAccess &rows = access->rows;
  Ints tableShape = rows.tableShape, inverse(rows.tablePermutation.size());
  for (auto [to, from] : llvm::enumerate(rows.tablePermutation))
    inverse[from] = to;
  Value written = emitter.permute(emitter.view(emitter.permute(src, rows.rowsPermutation), tableShape), inverse);
  if (accumulate)
    written = emitter.createValue("add.Tensor", {self, written}, {}, type);
  results.push_back(written);
  return success();
}

//===----------------------------------------------------------------------===//
// Elements in the order of a mask
//===----------------------------------------------------------------------===//

/// Element i of what masked_scatter takes goes where the mask holds for the ith time: its number is how often the mask
/// held before. Elsewhere it is 0.
static RowAccess getMaskedAccess(Emitter &emitter, Value flatMask, int64_t elements) {
  Builder &b = emitter.builder;
  RankedTensorType type = typeOf(flatMask).clone(b.getI64Type());
  Value count = emitter.createValue("cumsum", emitter.cast(flatMask, b.getI64Type()),
                                    emitter.named("dim", b.getI64IntegerAttr(0)), type);
  Value before = emitter.createValue("sub.Scalar", count, emitter.named("other", b.getI64IntegerAttr(1)), type);
  Value number = emitter.createValue("where.self", {flatMask, before, scalarLike(emitter, type, 0)}, {}, type);
  RowAccess access;
  access.index = checkIndex(emitter, number, 0, elements, "masked_scatter");
  access.tablePermutation = access.rowsPermutation = {0};
  access.tableShape = {elements};
  return access;
}

static LogicalResult emitMaskedScatter(Emitter &emitter, Call &call, Results &results) {
  Value source = call.value("source"), self = call.value("self");
  RankedTensorType type = call.resultTypes[0];
  int64_t elements = typeOf(source).getNumElements();
  Ints flat = {type.getNumElements()};
  Value mask = emitter.view(emitter.expand(call.value("mask"), type.getShape()), flat);
  RowAccess access = getMaskedAccess(emitter, mask, elements);
  Value chosen = access.gather(emitter, emitter.view(source, {elements}));
  self = emitter.view(emitter.expand(self, type.getShape()), flat);
  Value result = emitter.createValue("where.self", {mask, chosen, self}, {}, typeOf(self));
  results.push_back(emitter.view(result, type.getShape()));
  return success();
}

/// The gradient of what masked_scatter took.
static LogicalResult emitMaskedScatterBackward(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0], gradType = typeOf(call.value("grad_output"));
  Ints flat = {gradType.getNumElements()};
  Value mask = emitter.view(emitter.expand(call.value("mask"), gradType.getShape()), flat);
  Value grad = emitter.view(call.value("grad_output"), flat);
  RowAccess access = getMaskedAccess(emitter, mask, type.getNumElements());
  Value kept = emitter.createValue("where.self", {mask, grad, scalarLike(emitter, gradType, 0)}, {}, typeOf(grad));
  Value sum = access.scatter(emitter, Value(), kept, {type.getNumElements()}, "sum");
  results.push_back(emitter.view(sum, type.getShape()));
  return success();
}

//===----------------------------------------------------------------------===//
// Embeddings and losses
//===----------------------------------------------------------------------===//

static LogicalResult emitEmbedding(Emitter &emitter, Call &call, Results &results) {
  Value weight = call.value("weight");
  if (BoundArg *indices = call.find("indices"); weight && indices && indices->isValue())
    indices->values[0] = checkIndex(emitter, indices->values[0], 0, typeOf(weight).getDimSize(0), "embedding");
  return emitSameOp(emitter, call, results);
}

static LogicalResult emitEmbeddingBackward(Emitter &emitter, Call &call, Results &results) {
  if (call.boolean("scale_grad_by_freq"))
    return emitter.error("an embedding with scale_grad_by_freq is not supported: it counts ids over the whole batch");
  if (BoundArg *indices = call.find("indices"); indices && indices->isValue())
    indices->values[0] =
        checkIndex(emitter, indices->values[0], 0, call.integer("num_weights", 0), "embedding");
  return emitSameOp(emitter, call, results);
}

static void checkTarget(Emitter &emitter, Call &call) {
  BoundArg *target = call.find("target");
  Value self = call.value("self");
  if (!target || !target->isValue() || !self)
    return;
  RankedTensorType type = typeOf(self);
  int64_t classes = type.getDimSize(type.getRank() > 1 ? 1 : 0);
  target->values[0] =
      checkIndex(emitter, target->values[0], 0, classes, "nll_loss", call.integer("ignore_index", -100));
}

static LogicalResult emitNllLoss(Emitter &emitter, Call &call, Results &results) {
  checkTarget(emitter, call);
  return emitSameOp(emitter, call, results);
}

/// Losses of images are those of their pixels: [N, C, H, W] as [N H W, C].
static LogicalResult emitNllLoss2d(Emitter &emitter, Call &call, Results &results) {
  checkTarget(emitter, call);
  bool backward = call.op == "nll_loss2d_backward";
  RankedTensorType type = typeOf(call.value("self"));
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() != 4 || typeOf(call.value("target")).getNumElements() * shape[1] != type.getNumElements())
    return emitter.error("'") << call.op << "' of " << type << " and labels " << call.value("target").getType();
  int64_t pixels = shape[0] * shape[2] * shape[3], classes = shape[1];
  BoundArg *self = call.find("self"), *target = call.find("target");
  self->values[0] = emitter.view(emitter.permute(self->values[0], {0, 2, 3, 1}), {pixels, classes});
  target->values[0] = emitter.view(target->values[0], {pixels});
  RankedTensorType wanted = call.resultTypes[0];
  bool perPixel = call.integer("reduction", 1) == 0;
  if (backward) {
    call.op = "nll_loss_backward";
    if (BoundArg *grad = call.find("grad_output"); perPixel && grad)
      grad->values[0] = emitter.view(grad->values[0], {pixels});
    call.resultTypes[0] = wanted.clone({pixels, classes});
  } else {
    call.op = "nll_loss_forward";
    if (perPixel)
      call.resultTypes[0] = wanted.clone({pixels});
  }
  LogicalResult emitted = emitSameOp(emitter, call, results);
  call.resultTypes[0] = wanted;
  if (failed(emitted))
    return failure();
  if (backward)
    results[0] = emitter.permute(emitter.view(results[0], {shape[0], shape[2], shape[3], classes}), {0, 3, 1, 2});
  else
    results[0] = emitter.view(results[0], wanted.getShape());
  return success();
}

void spmd::addIndexingNormalizers(NormalizerTable &table) {
  table["gather"] = {&emitGather, {"self", "index"}};
  table["index_select"] = {&emitIndexSelect, {"self", "index"}};
  table["take"] = {&emitTake, {"self", "index"}};
  for (StringRef op : {"index.Tensor", "_unsafe_index.Tensor"})
    table[op] = {&emitIndex, {"self"}};
  for (StringRef op : {"scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add",
                       "scatter_reduce.two"})
    table[op] = {&emitScatter, {"self", "index"}};
  for (StringRef op : {"index_add", "index_copy", "index_fill.int_Scalar", "index_fill.int_Tensor", "index_reduce"})
    table[op] = {&emitIndexWrite, {"self", "index"}};
  table["put"] = {&emitPut, {"self", "index", "source"}};
  for (StringRef op : {"index_put", "_unsafe_index_put"})
    table[op] = {&emitIndexPut, {"self", "values"}};
  table["masked_scatter"] = {&emitMaskedScatter, {"self", "mask", "source"}};
  table["masked_scatter_backward"] = {&emitMaskedScatterBackward, {"grad_output", "mask"}};
  table["embedding"] = {&emitEmbedding, {"weight", "indices"}};
  table["embedding_dense_backward"] = {&emitEmbeddingBackward, {"grad_output", "indices"}};
  for (StringRef op : {"nll_loss_forward", "nll_loss_backward"})
    table[op] = {&emitNllLoss, {"self", "target"}};
  for (StringRef op : {"nll_loss2d_forward", "nll_loss2d_backward"})
    table[op] = {&emitNllLoss2d, {"self", "target"}};
}
