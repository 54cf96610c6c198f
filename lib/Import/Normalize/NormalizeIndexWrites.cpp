//===- NormalizeIndexWrites.cpp - Writing by number ------------------------===//

#include "DimArguments.h"
#include "Layouts.h"
#include "Normalize.h"
#include "RowWrites.h"

using namespace mlir;
using namespace spmd;

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

static std::optional<Reduction> reductionOf(Call &call) {
  StringRef op = call.op;
  if (op == "scatter_add" || op == "index_add")
    return Reduction::sum;
  BoundArg *reduce = call.find("reduce");
  return !reduce || reduce->isNone() ? Reduction::set : parseReduction(reduce->literal.string);
}

static bool includesSelf(Call &call) { return !call.find("include_self") || call.boolean("include_self"); }

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
    if (arg->isNumber())
      return emitter.expand(emitNumber(emitter, type.clone(ArrayRef<int64_t>()), arg->number()), shape);
  }
  return {};
}

/// scatter and its like: src has the dimensions of the index, or more.
static LogicalResult emitScatter(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  std::optional<Reduction> reduction = reductionOf(call);
  ArrayRef<int64_t> shape = typeOf(index).getShape();
  Value src = sourceLike(emitter, call, {"src", "value"}, self, shape);
  if (!reduction || !src)
    return emitter.error("'") << call.op << "' has arguments that are not supported";
  src = atLeastVector(emitter, src);
  if (failed(checkCorner(emitter, call, self, shape, dim)) || failed(checkCorner(emitter, call, src, shape, -1)))
    return failure();
  src = sliceCorner(emitter, src, shape, -1);
  Value corner = sliceCorner(emitter, self, shape, dim);
  RowAccess access = getAccessAlongDim(emitter, typeOf(corner).getShape(), dim, index, call.op);
  FailureOr<Value> written = emitWrite(emitter, access, corner, src, *reduction, includesSelf(call), call.op);
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
  std::optional<Reduction> reduction = reductionOf(call);
  Ints shape(typeOf(self).getShape());
  shape[dim] = typeOf(index).getNumElements();
  Value src = sourceLike(emitter, call, {"source", "value"}, self, shape);
  if (!reduction || !src)
    return emitter.error("'") << call.op << "' has arguments that are not supported";
  if (typeOf(src).getNumElements() != ShapedType::getNumElements(shape))
    return emitter.error("'") << call.op << "' has source " << src.getType() << ", expected shape [" << shape << "]";
  src = emitter.view(src, shape);
  if (BoundArg *alpha = call.find("alpha"); alpha && alpha->isNumber()) {
    bool isOne = alpha->literal.kind == step::Arg::Kind::integer && alpha->literal.integer == 1;
    if (!isOne)
      src = emitter.createValue("mul.Scalar", src, emitter.named("other", emitter.scalar(alpha->literal)), typeOf(src));
  }
  RowAccess access = getAccessOfRows(emitter, typeOf(self).getShape(), dim, index, call.op);
  FailureOr<Value> written = emitWrite(emitter, access, self, src, *reduction, includesSelf(call), call.op);
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

void spmd::normalizeIndexWrites(NormalizerTable &table) {
  for (StringRef op : {"scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add",
                       "scatter_reduce.two"})
    table[op] = {&emitScatter, {"self", "index"}};
  for (StringRef op : {"index_add", "index_copy", "index_fill.int_Scalar", "index_fill.int_Tensor", "index_reduce"})
    table[op] = {&emitIndexWrite, {"self", "index"}};
  table["put"] = {&emitPut, {"self", "index", "source"}};
  for (StringRef op : {"index_put", "_unsafe_index_put"})
    table[op] = {&emitIndexPut, {"self", "values"}};
}
