//===- NormalizeEmbeddings.cpp - Rows of a table, and bags of them ---------===//

#include "Arithmetic.h"
#include "Normalize.h"
#include "RowWrites.h"

#include "dialects/Aten/AtenView.h"

using namespace mlir;
using namespace spmd;

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

namespace {

/// The bags of an embedding_bag: element i of `indices` lies in the last bag that does not begin after i. Bags of one
/// size, whose offsets count, are a dimension of their own.
struct Bags {
  enum Mode { kSum = 0, kMean = 1, kMax = 2 };

  Bags(Emitter &emitter, Call &call, int64_t count, Type elementType)
      : emitter(emitter), a(emitter, Arithmetic::computeType(elementType)), ids(emitter, emitter.builder.getI64Type()),
        mode(call.integer("mode", kSum)), count(count) {
    elements = typeOf(call.value("indices")).getNumElements();
    indices = emitter.cast(emitter.view(call.value("indices"), {elements}), emitter.builder.getI64Type());
    column = {elements, 1};
    if (int64_t padding = call.integer("padding_idx", -1); padding >= 0)
      isKept = emitter.view(ids.compare("ne.Tensor", indices, ids.constant(static_cast<double>(padding))), column);
    if (Value given = call.value("per_sample_weights"))
      weights = emitter.view(given, column);
    Value offsets = call.value("offsets");
    size = getBagSize(offsets);
    if (size == 0) {
      Value begins = emitter.view(offsets, {1, typeOf(offsets).getNumElements()});
      bag = ids.add(ids.sum(ids.compare("le.Tensor", begins, ids.positions(elements, 0, 2)), {1}), -1);
    } else {
      bag = emitter.view(emitter.expand(ids.positions(count, 0, 2), {count, size}), {elements});
    }
  }

  /// What bags that count their elements in steps of one number hold; 0 of all others.
  int64_t getBagSize(Value offsets) {
    auto arange = offsets.getDefiningOp<aten::ArangeStartStepOp>();
    auto start = arange ? dyn_cast<IntegerAttr>(arange.getStart()) : IntegerAttr();
    auto step = arange ? dyn_cast<IntegerAttr>(arange.getStep()) : IntegerAttr();
    bool isEven = start && step && start.getInt() == 0 && step.getInt() > 0 && step.getInt() * count == elements;
    return isEven ? step.getInt() : 0;
  }

  /// Rows of elements as one row per bag; of no element, zero. `reduction`: sum, amax or amin.
  Value perBag(Arithmetic &in, Reduction reduction, Value rows) {
    int64_t columns = typeOf(rows).getDimSize(1);
    if (size != 0) {
      StringRef op = reduction == Reduction::sum ? "sum.dim_IntList" : reduction == Reduction::amax ? "amax" : "amin";
      return in.reduce(op, emitter.view(rows, {count, size, columns}), {1});
    }
    RankedTensorType type = typeOf(rows).clone({count, columns});
    RowAccess access = getAccessOfRows(emitter, type.getShape(), 0, bag, "embedding_bag");
    // Never fails: mean is the only reduction that does.
    return *emitWrite(emitter, access, emitter.expand(emitZero(emitter, type), type.getShape()), rows, reduction,
                      /*includeSelf=*/reduction == Reduction::sum, "embedding_bag");
  }
  /// A row per bag as one per element.
  Value perElement(Value rows) {
    int64_t columns = typeOf(rows).getDimSize(1);
    if (size != 0)
      return emitter.view(emitter.expand(emitter.view(rows, {count, 1, columns}), {count, size, columns}),
                          {elements, columns});
    return getAccessOfRows(emitter, {count, columns}, 0, bag, "embedding_bag").gather(emitter, rows);
  }
  /// How many elements of each bag count, [bags, 1].
  Value sizes(Arithmetic &in) {
    Value one = in.constant(1);
    Value ones = isKept ? in.where(isKept, one, in.constant(0)) : emitter.expand(one, column);
    return perBag(in, Reduction::sum, ones);
  }
  /// The rows of elements times what each weighs.
  Value weighted(Value rows) {
    if (weights)
      rows = a.mul(rows, weights);
    return isKept ? a.where(isKept, rows, a.constant(0)) : rows;
  }
  RowAccess inTable(ArrayRef<int64_t> shape) { return getAccessOfRows(emitter, shape, 0, indices, "embedding_bag"); }

  Emitter &emitter;
  Arithmetic a, ids;
  int64_t mode, count, elements = 0, size = 0;
  SmallVector<int64_t, 2> column;
  Value indices, isKept, weights, bag;
};

} // namespace

static LogicalResult checkBags(Emitter &emitter, Call &call, RankedTensorType bags) {
  if (call.boolean("scale_grad_by_freq"))
    return emitter.error(
        "'embedding_bag' with scale_grad_by_freq is not supported: it counts ids over the whole batch");
  Value weights = call.value("per_sample_weights");
  RankedTensorType indices = typeOf(call.value("indices"));
  if (bags.getRank() != 2 || typeOf(call.value("offsets")).getRank() != 1 || indices.getNumElements() == 0 ||
      bags.getNumElements() == 0 || (weights && typeOf(weights).getNumElements() != indices.getNumElements()))
    return emitter.error("'embedding_bag' of indices ") << indices << " and offsets " << call.value("offsets").getType()
                                                        << " giving " << bags << " is not supported";
  return success();
}

/// Bags, and for each element its bag, for each bag its size and, of maxima, the number of the table's row.
static LogicalResult emitEmbeddingBag(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  if (failed(checkBags(emitter, call, type)))
    return failure();
  Value table = call.value("weight");
  Bags bags(emitter, call, type.getDimSize(0), type.getElementType());
  Arithmetic &a = bags.a, &ids = bags.ids;
  Value rows = emitter.cast(bags.inTable(typeOf(table).getShape()).gather(emitter, table), a.elementType());
  Value sizes = bags.sizes(ids), numbers;
  Value result;
  if (bags.mode == Bags::kMax) {
    if (bags.isKept)
      rows = a.where(bags.isKept, rows, a.constant(-INFINITY));
    Value isFilled = ids.compare("gt.Tensor", sizes, ids.constant(0));
    result = a.where(isFilled, bags.perBag(a, Reduction::amax, rows), a.constant(0));
    // The first element that is the largest.
    Value isLargest = a.compare("eq.Tensor", rows, bags.perElement(result));
    Value places = ids.where(isLargest, ids.positions(bags.elements, 0, 2),
                             ids.constant(static_cast<double>(bags.elements - 1)));
    Value place = bags.perBag(ids, Reduction::amin, places);
    RankedTensorType placeType = typeOf(place);
    RowAccess access = getAccessOfRows(emitter, {bags.elements}, 0,
                                       emitter.view(place, {placeType.getNumElements()}), "embedding_bag");
    numbers = emitter.view(access.gather(emitter, bags.indices), placeType.getShape());
  } else {
    result = bags.perBag(a, Reduction::sum, bags.weighted(rows));
    if (bags.mode == Bags::kMean)
      result = a.div(result, a.clamp(sizes, 1, std::nullopt));
  }
  results.push_back(emitter.cast(result, type.getElementType()));
  // What PyTorch leaves empty where its kernel does not need it.
  Value extras[] = {bags.bag, sizes, numbers};
  for (auto [value, wanted] : llvm::zip_equal(extras, ArrayRef(call.resultTypes).drop_front())) {
    if (value && typeOf(value).getNumElements() == wanted.getNumElements())
      results.push_back(emitter.view(emitter.cast(value, wanted.getElementType()), wanted.getShape()));
    else
      results.push_back(emitNumber(emitter, wanted, 0));
  }
  return success();
}

static LogicalResult emitEmbeddingBagBackward(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0], gradType = typeOf(call.value("grad"));
  if (failed(checkBags(emitter, call, gradType)))
    return failure();
  Bags bags(emitter, call, gradType.getDimSize(0), type.getElementType());
  Arithmetic &a = bags.a;
  Value grad = emitter.cast(call.value("grad"), a.elementType()), sum;
  if (bags.mode == Bags::kMax) {
    grad = a.where(bags.ids.compare("gt.Tensor", bags.sizes(bags.ids), bags.ids.constant(0)), grad, a.constant(0));
    RowAccess access =
        getAccessAlongDim(emitter, type.getShape(), 0, call.value("maximum_indices"), "embedding_bag");
    sum = access.scatter(emitter, Value(), grad, type.getShape(), "sum");
  } else {
    if (bags.mode == Bags::kMean)
      grad = a.div(grad, a.clamp(bags.sizes(bags.ids), 1, std::nullopt));
    Value rows = bags.weighted(bags.perElement(grad));
    sum = bags.inTable(type.getShape()).scatter(emitter, Value(), rows, type.getShape(), "sum");
  }
  results.push_back(emitter.cast(sum, type.getElementType()));
  return success();
}

/// The gradient of what elements weigh in a sum.
static LogicalResult emitSampleWeightsBackward(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0], gradType = typeOf(call.value("grad"));
  if (failed(checkBags(emitter, call, gradType)))
    return failure();
  Value table = call.value("weight");
  Bags bags(emitter, call, gradType.getDimSize(0), type.getElementType());
  Value rows = bags.inTable(typeOf(table).getShape()).gather(emitter, table);
  Value products = bags.a.mul(rows, bags.perElement(call.value("grad")));
  Value sum = bags.a.sum(bags.weighted(products), {1});
  results.push_back(emitter.view(emitter.cast(sum, type.getElementType()), type.getShape()));
  return success();
}

void spmd::normalizeEmbeddings(NormalizerTable &table) {
  table["embedding"] = {&emitEmbedding, {"weight", "indices"}};
  table["embedding_dense_backward"] = {&emitEmbeddingBackward, {"grad_output", "indices"}};
  for (StringRef op : {"_embedding_bag", "_embedding_bag_forward_only"})
    table[op] = {&emitEmbeddingBag, {"weight", "indices", "offsets"}, 4};
  table["_embedding_bag_backward"] = {&emitEmbeddingBagBackward, {"grad", "indices", "offsets", "maximum_indices"}};
  table["_embedding_bag_per_sample_weights_backward"] = {&emitSampleWeightsBackward,
                                                         {"grad", "weight", "indices", "offsets"}};
}
