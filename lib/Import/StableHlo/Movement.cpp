//===- Movement.cpp - Ops that move elements ------------------------------===//

#include "Lowering.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

static LogicalResult checkOne(Operation *op) {
  if (op->getNumOperands() >= 1 && op->getNumResults() == 1)
    return success();
  return opError(op) << "expected operands and one result";
}

/// One number everywhere stays so in any other shape.
static bool keepRepeated(Lowering &lowering, Operation *op) {
  Tensor &source = lowering.get(op->getOperand(0));
  if (!source.isRepeated())
    return false;
  Tensor result = source;
  result.spec = specOf(op);
  result.id = -1;
  lowering.bind(op->getResult(0), result);
  return true;
}

static LogicalResult lowerBroadcast(Lowering &lowering, Operation *op) {
  FailureOr<Ints> dims = getInts(op, "broadcast_dimensions");
  if (failed(checkOne(op)) || failed(dims))
    return failure();
  if (keepRepeated(lowering, op))
    return success();
  Value operand = op->getOperand(0);
  Ints from = shapeOf(operand), shape = shapeOf(op->getResult(0)), expanded(shape.size(), 1);
  if (dims->size() != from.size())
    return opError(op) << "broadcast_dimensions must name a dimension for each of the operand's";
  Ints seen;
  for (auto [index, dim] : llvm::enumerate(*dims)) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || llvm::is_contained(seen, dim) ||
        (from[index] != 1 && from[index] != shape[dim]))
      return opError(op) << "broadcast_dimensions do not fit: " << dim;
    seen.push_back(dim);
    expanded[dim] = from[index];
  }
  int64_t id = lowering.use(operand);
  if (product(from) == 1) {
    Tensor result;
    result.spec = specOf(op);
    result.scalar = lowering.view(id, {});
    return lowering.bind(op->getResult(0), result), success();
  }
  // The operand's dimensions in the result's order.
  Ints order = llvm::to_vector_of<int64_t>(llvm::seq<int64_t>(0, dims->size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return (*dims)[a] < (*dims)[b]; });
  id = lowering.view(lowering.permute(id, order), expanded);
  lowering.bind(op->getResult(0), lowering.expand(id, shape));
  return success();
}

static LogicalResult lowerReshape(Lowering &lowering, Operation *op) {
  if (failed(checkOne(op)))
    return failure();
  if (product(shapeOf(op->getOperand(0))) != product(shapeOf(op->getResult(0))))
    return opError(op) << "a reshape must keep the number of elements";
  if (!keepRepeated(lowering, op))
    lowering.bind(op->getResult(0), lowering.view(lowering.use(op->getOperand(0)), shapeOf(op->getResult(0))));
  return success();
}

static LogicalResult lowerTranspose(Lowering &lowering, Operation *op) {
  FailureOr<Ints> dims = getInts(op, "permutation");
  if (failed(checkOne(op)) || failed(dims))
    return failure();
  Ints sorted = *dims;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, shapeOf(op->getOperand(0)).size())))
    return opError(op) << "permutation must name every dimension once";
  if (!keepRepeated(lowering, op))
    lowering.bind(op->getResult(0), lowering.permute(lowering.use(op->getOperand(0)), *dims));
  return success();
}

static LogicalResult lowerConcatenate(Lowering &lowering, Operation *op) {
  auto dim = dyn_cast_or_null<IntegerAttr>(getAttribute(op, "dimension"));
  if (failed(checkOne(op)))
    return failure();
  if (!dim || dim.getInt() < 0 || dim.getInt() >= static_cast<int64_t>(shapeOf(op->getOperand(0)).size()))
    return opError(op) << "attribute 'dimension' must name a dimension";
  step::Arg parts;
  parts.name = "tensors";
  parts.kind = Kind::values;
  for (Value operand : op->getOperands())
    parts.integers.push_back(lowering.use(operand));
  lowering.bind(op->getResult(0),
                lowering.emit("aten.cat.default", {parts, makeInteger("dim", dim.getInt())}, specOf(op)));
  return success();
}

static LogicalResult lowerSlice(Lowering &lowering, Operation *op) {
  FailureOr<Ints> start = getInts(op, "start_indices"), limit = getInts(op, "limit_indices"),
                  strides = getInts(op, "strides");
  if (failed(checkOne(op)) || failed(start) || failed(limit) || failed(strides))
    return failure();
  Ints shape = shapeOf(op->getOperand(0));
  if (start->size() != shape.size() || limit->size() != shape.size() || strides->size() != shape.size())
    return opError(op) << "start_indices, limit_indices and strides must have a number for each dimension";
  if (keepRepeated(lowering, op))
    return success();
  int64_t id = lowering.use(op->getOperand(0));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if ((*start)[dim] < 0 || (*limit)[dim] > shape[dim] || (*start)[dim] > (*limit)[dim] || (*strides)[dim] < 1)
      return opError(op) << "dimension " << dim << " has no elements " << (*start)[dim] << " to " << (*limit)[dim];
    id = lowering.slice(id, dim, (*start)[dim], (*limit)[dim], (*strides)[dim]);
  }
  lowering.bind(op->getResult(0), id);
  return success();
}

/// The start of a dynamic slice, if it is a constant: in bounds, as StableHLO clamps it.
static FailureOr<Ints> getStarts(Lowering &lowering, Operation *op, unsigned first, ArrayRef<int64_t> whole,
                                 ArrayRef<int64_t> sizes) {
  Ints starts;
  if (op->getNumOperands() != first + whole.size() || sizes.size() != whole.size())
    return opError(op) << "expected an index for each dimension";
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    if (sizes[dim] < 0 || sizes[dim] > whole[dim])
      return opError(op) << "dimension " << dim << " has no " << sizes[dim] << " elements";
    Tensor &index = lowering.get(op->getOperand(first + dim));
    if (!index.number) {
      InFlightDiagnostic error = opError(op) << "the start of dimension " << dim << " is computed in the step";
      error.attachNote() << "slice at constants, or select rows by indexing with an array: x[ids]";
      return error;
    }
    starts.push_back(std::clamp<int64_t>(index.number->integer, 0, whole[dim] - sizes[dim]));
  }
  return starts;
}

static LogicalResult lowerDynamicSlice(Lowering &lowering, Operation *op) {
  FailureOr<Ints> sizes = getInts(op, "slice_sizes");
  if (failed(checkOne(op)) || failed(sizes))
    return failure();
  FailureOr<Ints> starts = getStarts(lowering, op, 1, shapeOf(op->getOperand(0)), *sizes);
  if (failed(starts))
    return failure();
  int64_t id = lowering.use(op->getOperand(0));
  for (auto [dim, start] : llvm::enumerate(*starts))
    id = lowering.slice(id, dim, start, start + (*sizes)[dim]);
  lowering.bind(op->getResult(0), id);
  return success();
}

static LogicalResult lowerDynamicUpdateSlice(Lowering &lowering, Operation *op) {
  if (failed(checkOne(op)) || op->getNumOperands() < 2)
    return opError(op) << "expected a tensor, an update and indices";
  Ints whole = shapeOf(op->getOperand(0)), sizes = shapeOf(op->getOperand(1));
  FailureOr<Ints> starts = getStarts(lowering, op, 2, whole, sizes);
  if (failed(starts))
    return failure();
  // Innermost last: each dimension's piece is put into the piece of the ones before it.
  int64_t id = lowering.use(op->getOperand(1));
  for (int64_t dim = static_cast<int64_t>(whole.size()) - 1; dim >= 0; --dim) {
    if (sizes[dim] == whole[dim])
      continue;
    int64_t target = lowering.use(op->getOperand(0));
    for (int64_t outer = 0; outer < dim; ++outer)
      target = lowering.slice(target, outer, (*starts)[outer], (*starts)[outer] + sizes[outer]);
    id = lowering.emit("aten.slice_scatter.default",
                       {makeValue("self", target), makeValue("src", id), makeInteger("dim", dim),
                        makeInteger("start", (*starts)[dim]), makeInteger("end", (*starts)[dim] + sizes[dim]),
                        makeInteger("step", 1)},
                       lowering.spec(target));
  }
  lowering.bind(op->getResult(0), id);
  return success();
}

static int64_t padEnd(Lowering &lowering, int64_t id, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                      const Number &number) {
  TensorSpec spec = lowering.spec(id);
  Ints pads; // of the last dimension first
  for (int64_t dim = static_cast<int64_t>(spec.shape.size()) - 1; dim >= 0; --dim) {
    pads.append({low[dim], high[dim]});
    spec.shape[dim] += low[dim] + high[dim];
  }
  if (llvm::all_of(pads, [](int64_t pad) { return pad == 0; }))
    return id;
  return lowering.emit("aten.constant_pad_nd.default",
                       {makeValue("self", id), makeIntegers("pad", pads), makeNumber("value", number)}, spec);
}

static LogicalResult lowerPad(Lowering &lowering, Operation *op) {
  FailureOr<Ints> low = getInts(op, "edge_padding_low"), high = getInts(op, "edge_padding_high"),
                  interior = getInts(op, "interior_padding");
  if (failed(checkOne(op)) || failed(low) || failed(high) || failed(interior))
    return failure();
  Ints shape = shapeOf(op->getOperand(0));
  if (op->getNumOperands() != 2 || low->size() != shape.size() || high->size() != shape.size() ||
      interior->size() != shape.size())
    return opError(op) << "expected a tensor, a number, and paddings of each dimension";
  Tensor &padding = lowering.get(op->getOperand(1));
  if (!padding.number)
    return opError(op) << "the padding must be a constant";
  int64_t id = lowering.use(op->getOperand(0));
  // Between elements: after each element of a dimension of its own.
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t gap = (*interior)[dim], size = shape[dim];
    if (gap < 0)
      return opError(op) << "interior_padding must not be negative";
    if (gap == 0 || size == 0)
      continue;
    Ints apart(lowering.spec(id).shape.begin(), lowering.spec(id).shape.end()), joined = apart;
    apart.insert(apart.begin() + dim + 1, 1);
    Ints none(apart.size(), 0), after = none;
    after[dim + 1] = gap;
    id = padEnd(lowering, lowering.view(id, apart), none, after, *padding.number);
    joined[dim] = size * (gap + 1);
    id = lowering.slice(lowering.view(id, joined), dim, 0, size * (gap + 1) - gap);
  }
  lowering.bind(op->getResult(0), padEnd(lowering, id, *low, *high, *padding.number));
  return success();
}

static LogicalResult lowerIota(Lowering &lowering, Operation *op) {
  auto attr = dyn_cast_or_null<IntegerAttr>(getAttribute(op, "iota_dimension"));
  TensorSpec spec = specOf(op);
  int64_t rank = spec.shape.size(), dim = attr ? attr.getInt() : -1;
  if (dim < 0 || dim >= rank)
    return opError(op) << "attribute 'iota_dimension' must name a dimension";
  int64_t size = spec.shape[dim];
  // Counted in whole numbers: in a narrow type, an arange would not be exact.
  int64_t id = lowering.emit("aten.arange.start_step",
                             {makeInteger("start", 0), makeInteger("end", size), makeInteger("step", 1)},
                             {{size}, isFloating(spec.dtype) ? DType::I64 : spec.dtype});
  Ints shape(rank, 1);
  shape[dim] = size;
  id = lowering.view(lowering.cast(id, spec.dtype), shape);
  lowering.bind(op->getResult(0), lowering.expand(id, Ints(spec.shape.begin(), spec.shape.end())));
  return success();
}

static LogicalResult lowerReverse(Lowering &lowering, Operation *op) {
  FailureOr<Ints> dims = getInts(op, "dimensions");
  if (failed(checkOne(op)) || failed(dims))
    return failure();
  if (!keepRepeated(lowering, op))
    lowering.bind(op->getResult(0),
                  lowering.emit("aten.flip.default",
                                {makeValue("self", lowering.use(op->getOperand(0))), makeIntegers("dims", *dims)},
                                specOf(op)));
  return success();
}

void spmd::stablehlo::addMovementHandlers(HandlerTable &table) {
  table["stablehlo.broadcast_in_dim"] = &lowerBroadcast;
  table["stablehlo.reshape"] = &lowerReshape;
  table["stablehlo.transpose"] = &lowerTranspose;
  table["stablehlo.concatenate"] = &lowerConcatenate;
  table["stablehlo.slice"] = &lowerSlice;
  table["stablehlo.dynamic_slice"] = &lowerDynamicSlice;
  table["stablehlo.dynamic_update_slice"] = &lowerDynamicUpdateSlice;
  table["stablehlo.pad"] = &lowerPad;
  table["stablehlo.iota"] = &lowerIota;
  table["stablehlo.reverse"] = &lowerReverse;
}
