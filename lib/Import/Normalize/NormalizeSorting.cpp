//===- NormalizeSorting.cpp - Order: sort, topk, median, buckets ----------===//

#include "Arithmetic.h"
#include "DimArguments.h"
#include "Layouts.h"
#include "Normalize.h"

#include "dialects/Aten/TypePromotion.h"

using namespace mlir;
using namespace spmd;

namespace {

/// Values along a dimension in order, and where they were.
struct Sorted {
  Value values, indices;
  int64_t dim = 0;
};

} // namespace

/// `self` sorted along argument `dim`; a 0-dimensional one as a row of one.
static FailureOr<Sorted> emitSorted(Emitter &emitter, Call &call, Value self, int64_t dim, bool descending) {
  self = atLeastVector(emitter, self);
  RankedTensorType type = typeOf(self);
  dim = wrapDim(dim, type.getRank());
  if (dim < 0 || dim >= type.getRank())
    return emitter.error("'") << call.op << "' of dimension " << dim;
  Builder &b = emitter.builder;
  Operation *op = emitter.create("sort.stable", self,
                                 {emitter.named("dim", b.getI64IntegerAttr(dim)),
                                  emitter.named("descending", b.getBoolAttr(descending))},
                                 {type, type.clone(b.getI64Type())});
  return Sorted{op->getResult(0), op->getResult(1), dim};
}

static LogicalResult emitSort(Emitter &emitter, Call &call, Results &results) {
  auto sorted = emitSorted(emitter, call, call.value("self"), call.integer("dim", call.op == "msort" ? 0 : -1),
                           call.boolean("descending"));
  if (failed(sorted))
    return failure();
  if (call.resultTypes.size() == 2) {
    results.push_back(emitter.view(sorted->values, call.resultTypes[0].getShape()));
    results.push_back(emitter.view(sorted->indices, call.resultTypes[1].getShape()));
    return success();
  }
  Value wanted = StringRef(call.op).starts_with("argsort") ? sorted->indices : sorted->values;
  results.push_back(emitter.view(wanted, call.resultTypes[0].getShape()));
  return success();
}

/// The k largest or smallest; PyTorch leaves the order of equal ones open.
static LogicalResult emitTopk(Emitter &emitter, Call &call, Results &results) {
  auto sorted = emitSorted(emitter, call, call.value("self"), call.integer("dim", -1),
                           !call.find("largest") || call.boolean("largest"));
  if (failed(sorted))
    return failure();
  int64_t k = call.integer("k", 1);
  SmallVector<Value> both = {sorted->values, sorted->indices};
  for (auto [value, type] : llvm::zip_equal(both, call.resultTypes))
    results.push_back(emitter.view(emitSlice(emitter, value, sorted->dim, 0, k), type.getShape()));
  return success();
}

/// kthvalue and medians: one row of the sorted ones. A median of a row with a
/// not-a-number, which is sorted to the end, is not a number.
static LogicalResult emitKthValue(Emitter &emitter, Call &call, Results &results) {
  bool isMedian = StringRef(call.op).starts_with("median");
  Value self = call.value("self");
  if (call.op == "median")
    self = emitter.view(self, {typeOf(self).getNumElements()});
  int64_t dim = call.op == "median" ? 0 : call.integer("dim", -1);
  auto sorted = emitSorted(emitter, call, self, dim, /*descending=*/false);
  if (failed(sorted))
    return failure();
  int64_t rows = typeOf(sorted->values).getDimSize(sorted->dim);
  int64_t row = isMedian ? (rows - 1) / 2 : call.integer("k", 1) - 1;
  Value isNaN;
  if (isMedian && isa<FloatType>(typeOf(self).getElementType())) {
    Value last = emitSlice(emitter, sorted->values, sorted->dim, rows - 1, rows);
    isNaN = emitter.createValue("ne.Tensor", {last, last}, {}, typeOf(last).clone(emitter.builder.getI1Type()));
  }
  SmallVector<Value> both = {sorted->values, sorted->indices};
  for (auto [value, type] : llvm::zip(both, call.resultTypes)) {
    Value chosen = emitSlice(emitter, value, sorted->dim, row, row + 1);
    if (isNaN) {
      Value last = emitSlice(emitter, value, sorted->dim, rows - 1, rows);
      chosen = emitter.createValue("where.self", {isNaN, last, chosen}, {}, typeOf(last));
    }
    results.push_back(emitter.view(chosen, type.getShape()));
  }
  return success();
}

/// The median of the numbers of each row: not-a-number is sorted to the end, and the row that is chosen depends on how
/// many there are.
static LogicalResult emitNanMedian(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  bool isWhole = call.op == "nanmedian";
  if (isWhole)
    self = emitter.view(self, {typeOf(self).getNumElements()});
  auto sorted = emitSorted(emitter, call, self, isWhole ? 0 : call.integer("dim", -1), /*descending=*/false);
  if (failed(sorted))
    return failure();
  RankedTensorType type = typeOf(sorted->values);
  int64_t dim = sorted->dim, rank = type.getRank();
  Arithmetic a(emitter, type.getElementType()), ids(emitter, emitter.builder.getI64Type());
  // Of n numbers the one at (n - 1) / 2, rounded to zero; of none the first, which is none.
  Value count = ids.sum(a.compare("eq.Tensor", sorted->values, sorted->values), {dim}, /*keepDims=*/true);
  Value row = emitter.createValue("div.Scalar_mode", ids.add(count, -1),
                                  {emitter.named("other", emitter.builder.getI64IntegerAttr(2)),
                                   emitter.named("rounding_mode", emitter.builder.getStringAttr("trunc"))},
                                  typeOf(count));
  Value isChosen = ids.compare("eq.Tensor", ids.positions(type.getDimSize(dim), dim, rank), row);
  Value values = a.sum(a.where(isChosen, sorted->values, a.constant(0)), {dim});
  Value places = ids.sum(ids.where(isChosen, sorted->indices, ids.constant(0)), {dim});
  for (auto [value, result] : llvm::zip(SmallVector<Value>{values, places}, call.resultTypes))
    results.push_back(emitter.view(value, result.getShape()));
  return success();
}

/// The most frequent value of a row, the smallest of several, and where it stands last: every element is compared with
/// every other, which is one pass over the row for each and no memory.
static LogicalResult emitMode(Emitter &emitter, Call &call, Results &results) {
  Value self = atLeastVector(emitter, call.value("self"));
  RankedTensorType type = typeOf(self);
  int64_t rank = type.getRank(), dim = wrapDim(call.integer("dim", -1), rank);
  if (dim < 0 || dim >= rank)
    return refuseDim(emitter, call, dim, rank);
  Arithmetic a(emitter, type.getElementType()), ids(emitter, emitter.builder.getI64Type());
  SmallVector<int64_t> one(type.getShape()), other(type.getShape());
  one.insert(one.begin() + dim + 1, 1);
  other.insert(other.begin() + dim, 1);
  Value isEqual = a.compare("eq.Tensor", emitter.view(self, one), emitter.view(self, other));
  Value count = ids.sum(isEqual, {dim + 1});
  Value isMost = ids.compare("eq.Tensor", count, ids.reduce("amax", count, {dim}, /*keepDims=*/true));
  Value largest = a.reduce("amax", self, {dim}, /*keepDims=*/true);
  Value mode = a.reduce("amin", a.where(isMost, self, largest), {dim}, /*keepDims=*/true);
  Value place =
      ids.where(a.compare("eq.Tensor", self, mode), ids.positions(type.getDimSize(dim), dim, rank), ids.constant(0));
  results.push_back(emitter.view(mode, call.resultTypes[0].getShape()));
  results.push_back(emitter.view(ids.reduce("amax", place, {dim}), call.resultTypes[1].getShape()));
  return success();
}

/// searchsorted and bucketize: how many boundaries lie below each element.
static LogicalResult emitBuckets(Emitter &emitter, Call &call, Results &results) {
  bool isSearch = StringRef(call.op).starts_with("searchsorted");
  BoundArg *element = call.find("self");
  Value boundaries = call.value(isSearch ? "sorted_sequence" : "boundaries");
  BoundArg *sorter = call.find("sorter"), *side = call.find("side");
  if (!boundaries || !element || (sorter && sorter->isValue()))
    return emitter.error("'") << call.op << "' with these arguments is not supported";
  bool right = call.boolean("right") || (side && side->literal.string == "right");
  Builder &b = emitter.builder;
  RankedTensorType type = typeOf(boundaries), resultType = call.resultTypes[0];
  Value elements;
  if (element->isValue())
    elements = element->values[0];
  else
    elements = emitter.full(type.clone(ArrayRef<int64_t>()), emitter.scalar(element->literal));
  Type promoted = aten::promoteTypes({type, typeOf(elements)}, {}, b.getContext());
  boundaries = emitter.cast(boundaries, promoted);
  elements = emitter.cast(elements, promoted);
  // One row of boundaries for all elements, or one for each row of them.
  SmallVector<int64_t> column(resultType.getShape()), row(type.getShape());
  column.push_back(1);
  if (row.size() > 1)
    row.insert(row.end() - 1, 1);
  SmallVector<int64_t> shape(resultType.getShape());
  shape.push_back(row.back());
  Value isBelow = emitter.createValue(right ? "le.Tensor" : "lt.Tensor",
                                      {emitter.view(boundaries, row), emitter.view(elements, column)}, {},
                                      resultType.clone(shape, b.getI1Type()));
  Value count = emitter.createValue("sum.dim_IntList", isBelow,
                                    {emitter.named("dim", b.getDenseI64ArrayAttr({resultType.getRank()})),
                                     emitter.named("keepdim", b.getBoolAttr(false)),
                                     emitter.named("dtype", TypeAttr::get(resultType.getElementType()))},
                                    resultType);
  results.push_back(count);
  return success();
}

/// Ops whose result has as many elements as the values say.
static LogicalResult refuseDynamicShape(Emitter &emitter, Call &call, Results &) {
  return emitter.error("the shape of the result of '") << call.op << "' depends on data, which cannot be compiled; use a mask "
                                                            "(where, multiplication) instead of selecting elements";
}

void spmd::normalizeSorting(NormalizerTable &table) {
  for (StringRef op : {"sort", "sort.stable", "argsort", "argsort.stable", "msort"})
    table[op] = {&emitSort, {"self"}};
  table["topk"] = {&emitTopk, {"self"}};
  for (StringRef op : {"kthvalue", "median", "median.dim"})
    table[op] = {&emitKthValue, {"self"}};
  for (StringRef op : {"nanmedian", "nanmedian.dim"})
    table[op] = {&emitNanMedian, {"self"}};
  table["mode"] = {&emitMode, {"self"}, 2};
  for (StringRef op : {"searchsorted.Tensor", "searchsorted.Scalar", "bucketize.Tensor", "bucketize.Scalar"})
    table[op] = &emitBuckets;
  for (StringRef op : {"nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive",
                       "repeat_interleave.Tensor", "bincount"})
    table[op] = &refuseDynamicShape;
}
