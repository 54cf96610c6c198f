//===- Indexing.cpp - Rows by number: gather and scatter ------------------===//
//
// [Note: rows]
// StableHLO's gather takes a window at a computed place. What indexing with arrays, jnp.take and take_along_axis make
// of it are windows that have one element in the dimensions that are indexed and are whole in all others: rows of a
// matrix, [S..., rest] with the indexed dimensions S as one. Places outside are moved inside by a gather, and left out
// by a scatter.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

namespace {
/// What gather and scatter say alike, in the words of gather.
struct Places {
  Ints shape;        ///< of the tensor with the rows
  Ints batch;        ///< its dimensions that the indices have too
  Ints indicesBatch; ///< and which of the indices' they are
  Ints indexed;      ///< its dimensions that the indices number
  Ints kept;         ///< the other ones: what a row is made of
  Ints window;       ///< its dimensions that the result has: `kept`, and indexed ones of size 1
  Ints offsets;      ///< and where the result has them
  int64_t vectorDim = 0;

  Ints sizes(ArrayRef<int64_t> dims) const {
    Ints result;
    for (int64_t dim : dims)
      result.push_back(shape[dim]);
    return result;
  }
  /// The order of dimensions in which the tensor is [batch..., indexed..., kept...].
  Ints order() const { return join({batch, indexed, kept}); }
};

/// Numbers of rows, in the shape of the indices without their vector dimension.
struct Rows {
  int64_t id = -1;       ///< in bounds
  int64_t isInside = -1; ///< whether they were
};
} // namespace

static bool areDims(ArrayRef<int64_t> dims, size_t rank) {
  return llvm::all_of(
      dims, [&](int64_t dim) { return dim >= 0 && dim < static_cast<int64_t>(rank) && llvm::count(dims, dim) == 1; });
}

/// Finishes `places` of which all but `kept` and `window` is read; `collapsed` are dimensions that the result lacks.
static LogicalResult finishPlaces(Operation *op, Places &places, ArrayRef<int64_t> collapsed, Value indices,
                                  Value windows) {
  size_t rank = places.shape.size(), indicesRank = shapeOf(indices).size();
  Ints gone = join({places.batch, collapsed});
  if (!areDims(places.indexed, rank) || !areDims(gone, rank) || !areDims(places.indicesBatch, indicesRank) ||
      places.batch.size() != places.indicesBatch.size() || !areDims(places.offsets, shapeOf(windows).size()) ||
      places.vectorDim < 0 || places.vectorDim > static_cast<int64_t>(indicesRank) ||
      llvm::is_contained(places.indicesBatch, places.vectorDim))
    return opError(op) << "dimension numbers do not fit the operands";
  for (int64_t dim : llvm::seq<int64_t>(0, rank)) {
    bool isIndexed = llvm::is_contained(places.indexed, dim), isBatch = llvm::is_contained(places.batch, dim);
    bool isLost = !isIndexed && !isBatch && llvm::is_contained(gone, dim) && places.shape[dim] != 1;
    if ((isIndexed && isBatch) || isLost)
      return opError(op) << "dimension numbers do not fit the operands";
    if (!isIndexed && !isBatch)
      places.kept.push_back(dim);
    if (!llvm::is_contained(gone, dim))
      places.window.push_back(dim);
  }
  if (places.window.size() != places.offsets.size())
    return opError(op) << "dimension numbers do not fit the operands";
  return success();
}

static LogicalResult refuseWindow(Operation *op) {
  InFlightDiagnostic error = opError(op) << "windows at computed places are not supported";
  error.attachNote() << "rows are: x[ids], jnp.take, jnp.take_along_axis; slice at constants";
  return error;
}

/// The indices as numbers of rows of a matrix whose rows are the indexed dimensions.
static Rows getRows(Lowering &lowering, const Places &places, Value indices, bool wantsInside) {
  int64_t all = lowering.cast(lowering.use(indices), DType::I64);
  Ints shape = shapeOf(indices), sizes = places.sizes(places.indexed);
  bool isVector = places.vectorDim < static_cast<int64_t>(shape.size());
  Ints scalars = isVector ? without(shape, {places.vectorDim}) : shape;
  TensorSpec spec{{scalars.begin(), scalars.end()}, DType::I64}, mask{spec.shape, DType::I1};
  Rows rows;
  for (auto [index, size] : llvm::enumerate(sizes)) {
    int64_t one = isVector ? lowering.slice(all, places.vectorDim, index, index + 1) : all;
    one = lowering.view(one, scalars);
    auto compare = [&](StringRef op, int64_t bound) {
      return lowering.emit(op, {makeValue("self", one), makeNumber("other", {Kind::integer, 0, bound})}, mask);
    };
    if (wantsInside)
      for (int64_t inside : {compare("aten.ge.Scalar", 0), compare("aten.lt.Scalar", size)})
        rows.isInside = rows.isInside < 0 ? inside : combine(lowering, "stablehlo.and", rows.isInside, inside);
    one = lowering.emit("aten.clamp.default",
                        {makeValue("self", one), makeInteger("min", 0), makeInteger("max", size - 1)}, spec);
    Ints inner(ArrayRef(sizes).drop_front(index + 1));
    if (int64_t stride = product(inner); stride != 1)
      one = lowering.emit("aten.mul.Scalar", {makeValue("self", one), makeInteger("other", stride)}, spec);
    rows.id = rows.id < 0 ? one : combine(lowering, "stablehlo.add", rows.id, one);
  }
  return rows;
}

/// Row numbers, or what there is of each row number, with the batch dimensions first: [batch..., others as one].
/// `sizes` gets the dimensions' sizes in that order, and `order` the order itself.
static void splitBatch(const Places &places, ArrayRef<int64_t> scalars, Ints &order, Ints &sizes) {
  for (int64_t dim : places.indicesBatch)
    order.push_back(dim > places.vectorDim ? dim - 1 : dim);
  for (int64_t dim : llvm::seq<int64_t>(0, scalars.size()))
    if (!llvm::is_contained(ArrayRef(order).take_front(places.batch.size()), dim))
      order.push_back(dim);
  for (int64_t dim : order)
    sizes.push_back(scalars[dim]);
}

/// A result or an update: which of its dimensions number rows, and which are of the window.
static Ints getWindowOrder(const Places &places, size_t rank) {
  Ints order;
  for (int64_t dim : llvm::seq<int64_t>(0, rank))
    if (!llvm::is_contained(places.offsets, dim))
      order.push_back(dim);
  order.append(places.offsets);
  return order;
}

namespace {
/// What gather and scatter each call the lists of Places.
struct PlaceNames {
  StringRef batch, indicesBatch, indexed, offsets;
};
} // namespace

static Places readPlaces(const Fields &fields, Value rows, const PlaceNames &names) {
  Places places;
  places.shape = shapeOf(rows);
  places.batch = fields.list(names.batch);
  places.indicesBatch = fields.list(names.indicesBatch);
  places.indexed = fields.list(names.indexed);
  places.offsets = fields.list(names.offsets);
  Ints vectorDim = fields.list("index_vector_dim");
  places.vectorDim = vectorDim.empty() ? 0 : vectorDim[0];
  return places;
}

static LogicalResult lowerGather(Lowering &lowering, Operation *op) {
  FailureOr<Fields> fields = Fields::read(op, "dimension_numbers", "gather");
  FailureOr<Ints> slices = getInts(op, "slice_sizes");
  if (failed(fields) || failed(slices))
    return failure();
  if (op->getNumOperands() != 2 || op->getNumResults() != 1)
    return opError(op) << "expected two operands and one result";
  Value operand = op->getOperand(0), indices = op->getOperand(1);
  Places places = readPlaces(*fields, operand,
                             {"operand_batching_dims", "start_indices_batching_dims", "start_index_map", "offset_dims"});
  if (failed(finishPlaces(op, places, fields->list("collapsed_slice_dims"), indices, op->getResult(0))))
    return failure();
  if (slices->size() != places.shape.size())
    return opError(op) << "slice_sizes must have a number for each dimension";
  for (auto [dim, size] : llvm::enumerate(*slices)) {
    bool isOne = llvm::is_contained(places.indexed, static_cast<int64_t>(dim)) ||
                 llvm::is_contained(places.batch, static_cast<int64_t>(dim));
    if (size != (isOne ? 1 : places.shape[dim]))
      return refuseWindow(op);
  }
  if (places.indexed.empty())
    return refuseWindow(op);

  Rows rows = getRows(lowering, places, indices, /*wantsInside=*/false);
  Ints scalars(lowering.spec(rows.id).shape.begin(), lowering.spec(rows.id).shape.end());
  int64_t count = product(places.sizes(places.indexed)), width = product(places.sizes(places.kept));
  int64_t table = lowering.permute(lowering.use(operand), places.order());
  DType dtype = lowering.spec(table).dtype;
  Ints result; // [rows' dimensions..., window...]
  int64_t id;
  if (places.batch.empty()) {
    Ints shape = scalars;
    shape.push_back(width);
    id = lowering.emit("aten.embedding.default",
                       {makeValue("weight", lowering.view(table, {count, width})), makeValue("indices", rows.id),
                        makeInteger("padding_idx", -1), makeBoolean("scale_grad_by_freq", false),
                        makeBoolean("sparse", false)},
                       {{shape.begin(), shape.end()}, dtype});
    result = scalars;
  } else {
    Ints order, sizes, batch = places.sizes(places.batch);
    splitBatch(places, scalars, order, sizes);
    int64_t others = product(ArrayRef(sizes).drop_front(batch.size()));
    Ints shape = batch, tableShape = batch;
    shape.append({others, width});
    tableShape.append({count, width});
    Ints numbers = batch;
    numbers.append({others, 1});
    int64_t index = lowering.expand(lowering.view(lowering.permute(rows.id, order), numbers), shape);
    id = lowering.emit("aten.gather.default",
                       {makeValue("self", lowering.view(table, tableShape)), makeInteger("dim", batch.size()),
                        makeValue("index", index), makeBoolean("sparse_grad", false)},
                       {{shape.begin(), shape.end()}, dtype});
    Ints apart = sizes;
    apart.push_back(width);
    Ints back = invert(order);
    back.push_back(order.size());
    id = lowering.permute(lowering.view(id, apart), back);
    result = scalars;
  }
  for (int64_t dim : places.window)
    result.push_back((*slices)[dim]);
  id = lowering.permute(lowering.view(id, result), invert(getWindowOrder(places, result.size())));
  lowering.bind(op->getResult(0), id);
  return success();
}

static LogicalResult lowerScatter(Lowering &lowering, Operation *op) {
  FailureOr<Fields> fields = Fields::read(op, "scatter_dimension_numbers", "scatter");
  if (failed(fields))
    return failure();
  if (op->getNumOperands() != 3 || op->getNumResults() != 1 || op->getNumRegions() != 1)
    return opError(op) << "a scatter of several tensors at once is not supported";
  if (getCombiner(op->getRegion(0)) != "stablehlo.add") {
    InFlightDiagnostic error = opError(op) << "a scatter that does not add is not supported";
    error.attachNote() << "x.at[ids].add(y) is; instead of x.at[ids].set(y), select with jnp.where";
    return error;
  }
  Value input = op->getOperand(0), indices = op->getOperand(1), updates = op->getOperand(2);
  Places places = readPlaces(*fields, input,
                             {"input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims",
                              "update_window_dims"});
  if (failed(finishPlaces(op, places, fields->list("inserted_window_dims"), indices, updates)))
    return failure();
  Ints updateShape = shapeOf(updates);
  for (auto [dim, offset] : llvm::zip_equal(places.window, places.offsets))
    if (updateShape[offset] != (llvm::is_contained(places.indexed, dim) ? 1 : places.shape[dim]))
      return refuseWindow(op);
  DType dtype = lowering.get(input).spec.dtype;
  if (places.indexed.empty() || !isFloating(dtype))
    return opError(op) << "a scatter of " << runtime::nameOf(dtype) << " at " << places.indexed.size()
                       << " dimensions is not supported";

  Rows rows = getRows(lowering, places, indices, /*wantsInside=*/true);
  Ints scalars(lowering.spec(rows.id).shape.begin(), lowering.spec(rows.id).shape.end());
  int64_t count = product(places.sizes(places.indexed)), width = product(places.sizes(places.kept));
  // [rows' dimensions..., width], zero where the row is none.
  Ints shape = scalars, mask = scalars;
  shape.push_back(width);
  mask.push_back(1);
  int64_t values =
      lowering.view(lowering.permute(lowering.use(updates), getWindowOrder(places, updateShape.size())), shape);
  Tensor zero;
  zero.spec = {{}, dtype};
  zero.number = Number{Kind::real, 0, 0};
  values = lowering.emit("aten.where.self",
                         {makeValue("condition", lowering.expand(lowering.view(rows.isInside, mask), shape)),
                          makeValue("self", values), makeValue("other", lowering.useScalar(zero))},
                         lowering.spec(values));
  Ints table = places.sizes(places.batch);
  table.append({count, width});
  int64_t id;
  if (places.batch.empty()) {
    id = lowering.emit("aten.embedding_dense_backward.default",
                       {makeValue("grad_output", values), makeValue("indices", rows.id),
                        makeInteger("num_weights", count), makeInteger("padding_idx", -1),
                        makeBoolean("scale_grad_by_freq", false)},
                       {{table.begin(), table.end()}, dtype});
  } else {
    Ints order, sizes, batch = places.sizes(places.batch);
    splitBatch(places, scalars, order, sizes);
    int64_t others = product(ArrayRef(sizes).drop_front(batch.size()));
    Ints source = batch, numbers = batch, apart = order;
    source.append({others, width});
    numbers.append({others, 1});
    apart.push_back(order.size());
    int64_t index = lowering.expand(lowering.view(lowering.permute(rows.id, order), numbers), source);
    zero.spec.shape.assign(table.begin(), table.end());
    id = lowering.emit("aten.scatter_add.default",
                       {makeValue("self", lowering.use(zero)), makeInteger("dim", batch.size()),
                        makeValue("index", index),
                        makeValue("src", lowering.view(lowering.permute(values, apart), source))},
                       zero.spec);
  }
  id = lowering.view(id, places.sizes(places.order()));
  id = lowering.permute(id, invert(places.order()));
  Tensor &base = lowering.get(input);
  if (!base.number || base.number->asDouble() != 0)
    id = combine(lowering, "stablehlo.add", lowering.useScalar(base), id);
  lowering.bind(op->getResult(0), id);
  return success();
}

void spmd::stablehlo::addIndexingHandlers(HandlerTable &table) {
  table["stablehlo.gather"] = &lowerGather;
  table["stablehlo.scatter"] = &lowerScatter;
}
