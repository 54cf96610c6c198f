//===- Reductions.cpp - Reductions with a region --------------------------===//

#include "Lowering.h"

#include "mlir/IR/Diagnostics.h"

#include <limits>

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

StringRef spmd::stablehlo::getCombiner(Region &region) {
  if (!region.hasOneBlock())
    return {};
  Block &body = region.front();
  if (body.getOperations().size() != 2 || body.getNumArguments() != 2)
    return {};
  Operation &op = body.front(), &end = body.back();
  bool takesBoth = op.getNumOperands() == 2 && op.getNumResults() == 1 &&
                   ((op.getOperand(0) == body.getArgument(0) && op.getOperand(1) == body.getArgument(1)) ||
                    (op.getOperand(0) == body.getArgument(1) && op.getOperand(1) == body.getArgument(0)));
  if (!takesBoth || end.getNumOperands() != 1 || end.getOperand(0) != op.getResult(0))
    return {};
  return op.getName().getStringRef();
}

/// The least or the greatest number of a whole type.
static int64_t getLimit(DType dtype, bool least) {
  if (dtype == DType::U8)
    return least ? 0 : 255;
  unsigned bits = 8 * runtime::sizeOf(dtype);
  return least ? APInt::getSignedMinValue(bits).getSExtValue() : APInt::getSignedMaxValue(bits).getSExtValue();
}

bool spmd::stablehlo::isNeutral(StringRef op, const Number &number, DType dtype) {
  double value = number.asDouble();
  bool isBool = dtype == DType::I1;
  if (op == "stablehlo.add" || op == "stablehlo.or")
    return value == 0;
  if (op == "stablehlo.multiply")
    return value == 1;
  if (op == "stablehlo.and")
    return isBool ? value == 1 : number.integer == -1;
  if (op != "stablehlo.maximum" && op != "stablehlo.minimum")
    return false;
  bool isMax = op == "stablehlo.maximum";
  if (isBool)
    return value == (isMax ? 0 : 1);
  if (isFloating(dtype))
    return value == (isMax ? -1 : 1) * std::numeric_limits<double>::infinity();
  return number.integer == getLimit(dtype, isMax);
}

/// The elements along `dims` as one; -1 when there is no such reduction.
static int64_t reduce(Lowering &lowering, StringRef op, int64_t id, ArrayRef<int64_t> dims) {
  TensorSpec spec = lowering.spec(id);
  bool isBool = spec.dtype == DType::I1;
  TensorSpec result{{}, spec.dtype};
  for (int64_t dim : without(Ints(spec.shape.begin(), spec.shape.end()), dims))
    result.shape.push_back(dim);
  std::vector<step::Arg> args{makeValue("self", id), makeIntegers("dim", dims), makeBoolean("keepdim", false)};
  if (op == "stablehlo.add" && !isBool) {
    step::Arg dtype;
    dtype.name = "dtype";
    if (!isFloating(spec.dtype)) {
      dtype.kind = Kind::dtype; // ATen would sum them as i64
      dtype.dtype = spec.dtype;
    }
    args.push_back(dtype);
    return lowering.emit("aten.sum.dim_IntList", args, result);
  }
  if (isBool) {
    bool isAny = op == "stablehlo.or" || op == "stablehlo.maximum" || op == "stablehlo.add";
    if (isAny || op == "stablehlo.and" || op == "stablehlo.minimum" || op == "stablehlo.multiply")
      return lowering.emit(isAny ? "aten.any.dims" : "aten.all.dims", args, result);
    return -1;
  }
  if (op == "stablehlo.maximum" || op == "stablehlo.minimum")
    return lowering.emit(op == "stablehlo.maximum" ? "aten.amax.default" : "aten.amin.default", args, result);
  if (op != "stablehlo.multiply")
    return -1;
  Ints descending(dims);
  llvm::sort(descending, std::greater<>());
  for (int64_t dim : descending) {
    TensorSpec less = lowering.spec(id);
    less.shape.erase(less.shape.begin() + dim);
    step::Arg dtype;
    dtype.name = "dtype";
    dtype.kind = Kind::dtype;
    dtype.dtype = spec.dtype;
    id = lowering.emit("aten.prod.dim_int",
                       {makeValue("self", id), makeInteger("dim", dim), makeBoolean("keepdim", false), dtype}, less);
  }
  return id;
}

/// [Note: norms]
/// A global norm, as optax and hand-written clipping have it, sums the squares of every gradient. Gradients are reduced
/// to chunks, of which a norm can be taken; of squares that are spelled out, whole gradients would be needed on every
/// rank. So a sum of squares of the optimizer is a norm, squared. -1 when it is none.
static int64_t sumSquares(Lowering &lowering, Operation *op, ArrayRef<int64_t> dims) {
  const Tensor &square = lowering.get(op->getOperand(0));
  if (!lowering.isOptimizer() || square.root < 0 || dims.size() != square.spec.shape.size() || dims.empty())
    return -1;
  runtime::DType type = square.spec.dtype;
  step::Arg dim, dtype;
  dim.name = "dim";
  dtype.name = "dtype";
  int64_t norm = lowering.emit("aten.linalg_vector_norm.default",
                               {makeValue("self", square.root), makeNumber("ord", {Kind::real, 2, 0}), dim,
                                makeBoolean("keepdim", false), dtype},
                               {{}, type});
  return combine(lowering, "stablehlo.multiply", norm, norm);
}

static LogicalResult lowerReduce(Lowering &lowering, Operation *op) {
  if (op->getNumOperands() != 2 || op->getNumResults() != 1 || op->getNumRegions() != 1) {
    InFlightDiagnostic error = opError(op) << "a reduction of several operands at once is not supported";
    error.attachNote() << "argmax and argmin are such; compute accuracies outside of the step, from its outputs";
    return error;
  }
  FailureOr<Ints> dims = getInts(op, "dimensions");
  if (failed(dims))
    return failure();
  StringRef combiner = getCombiner(op->getRegion(0));
  Tensor &operand = lowering.get(op->getOperand(0)), &init = lowering.get(op->getOperand(1));
  for (int64_t dim : *dims)
    if (dim < 0 || dim >= static_cast<int64_t>(operand.spec.shape.size()) || llvm::count(*dims, dim) != 1)
      return opError(op) << "dimensions do not fit: " << dim;
  if (dims->empty() && init.number && isNeutral(combiner, *init.number, operand.spec.dtype))
    return lowering.bind(op->getResult(0), operand), success();
  int64_t id = combiner == "stablehlo.add" ? sumSquares(lowering, op, *dims) : -1;
  if (id < 0)
    id = dims->empty() ? lowering.use(operand) : reduce(lowering, combiner, lowering.use(operand), *dims);
  if (id >= 0 && !(init.number && isNeutral(combiner, *init.number, operand.spec.dtype)))
    id = combine(lowering, combiner, id, lowering.useScalar(init));
  if (id < 0) {
    InFlightDiagnostic error = opError(op) << "a reduction by this region is not supported";
    error.attachNote() << "known are add, multiply, maximum and minimum, of booleans also and and or";
    return error;
  }
  lowering.bind(op->getResult(0), id);
  return success();
}

void spmd::stablehlo::addReductionHandlers(HandlerTable &table) { table["stablehlo.reduce"] = &lowerReduce; }
