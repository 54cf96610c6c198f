//===- AtenVerifyView.cpp - Verifiers of views, pieces, factories ---------===//

#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/RuleBuilder.h"
#include "dialects/Aten/ScalarBuilder.h"

#include <cmath>
#include <utility>

using namespace mlir;
using namespace spmd::aten;

using Shape = SmallVector<int64_t>;

static int64_t integer(Operation *op, StringRef name) { return cast<IntegerAttr>(op->getAttr(name)).getInt(); }
static ArrayRef<int64_t> integers(Operation *op, StringRef name) {
  return cast<DenseI64ArrayAttr>(op->getAttr(name)).asArrayRef();
}
/// D: operand and result element types agree.
static LogicalResult expectOneElementType(Operation *op) {
  Type type = typeOf(op->getResult(0)).getElementType();
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults())))
    if (typeOf(value).getElementType() != type)
      return op->emitOpError() << "has " << typeOf(value) << ", expected element type " << type;
  return success();
}

static LogicalResult expectDim(Operation *op, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError() << "has dimension " << dim << " of a tensor of rank " << rank;
}

LogicalResult spmd::aten::verifyView(Operation *op) {
  RankedTensorType from = typeOf(op->getOperand(0)), to = typeOf(op->getResult(0));
  if (from.getNumElements() != to.getNumElements()) // C1
    return op->emitOpError() << "makes " << to << " of " << from << ", which has another number of elements";
  if (failed(expectShape(op, op->getResult(0), integers(op, "size")))) // C2
    return failure();
  return expectOneElementType(op);
}

LogicalResult spmd::aten::verifyUnsqueeze(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0));
  int64_t dim = integer(op, "dim");
  if (failed(expectDim(op, dim, shape.size() + 1))) // C1
    return failure();
  shape.insert(shape.begin() + dim, 1);
  return failure(failed(expectShape(op, op->getResult(0), shape)) || failed(expectOneElementType(op))); // C2
}

LogicalResult spmd::aten::verifySqueeze(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0));
  int64_t dim = integer(op, "dim");
  if (failed(expectDim(op, dim, shape.size()))) // C1
    return failure();
  if (shape[dim] == 1)
    shape.erase(shape.begin() + dim);
  return failure(failed(expectShape(op, op->getResult(0), shape)) || failed(expectOneElementType(op))); // C2
}

LogicalResult spmd::aten::verifyCast(Operation *op) {
  if (failed(expectShape(op, op->getResult(0), shapeOf(op->getOperand(0))))) // C1
    return failure();
  Type dtype = cast<ToCopyOp>(op).getDtype();
  if (typeOf(op->getResult(0)).getElementType() != dtype) // C2
    return op->emitOpError() << "has result " << typeOf(op->getResult(0)) << ", expected element type " << dtype;
  return success();
}

LogicalResult spmd::aten::verifyPermute(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0)), permuted;
  ArrayRef<int64_t> dims = integers(op, "dims");
  Shape sorted = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  if (!std::is_permutation(dims.begin(), dims.end(), sorted.begin(), sorted.end())) // C1
    return op->emitOpError() << "has dims [" << dims << "], expected each dimension of a tensor of rank "
                             << shape.size() << " once";
  for (int64_t dim : dims)
    permuted.push_back(shape[dim]);
  return failure(failed(expectShape(op, op->getResult(0), permuted)) || failed(expectOneElementType(op))); // C2
}

LogicalResult spmd::aten::verifyExpand(Operation *op) {
  Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  bool fits = from.size() <= to.size();
  for (auto [mine, theirs] : llvm::zip(llvm::reverse(from), llvm::reverse(to)))
    fits &= mine == theirs || mine == 1;
  if (!fits) // C1
    return op->emitOpError() << "cannot expand " << typeOf(op->getOperand(0)) << " to " << typeOf(op->getResult(0));
  if (failed(expectShape(op, op->getResult(0), integers(op, "size")))) // C2
    return failure();
  return expectOneElementType(op);
}

LogicalResult spmd::aten::verifySlice(Operation *op) {
  bool backward = isa<SliceBackwardOp>(op), scatter = isa<SliceScatterOp>(op);
  Value whole = backward ? op->getResult(0) : op->getOperand(0);
  Value piece = backward ? op->getOperand(0) : scatter ? op->getOperand(1) : op->getResult(0);
  Shape shape = shapeOf(whole);
  int64_t dim = integer(op, "dim"), start = integer(op, "start"), end = integer(op, "end"), step = integer(op, "step");
  if (failed(expectDim(op, dim, shape.size()))) // C1
    return failure();
  if (start < 0 || start > end || end > shape[dim] || step < 1) // C2
    return op->emitOpError() << "slices [" << start << ", " << end << ") by " << step << " of a dimension of size "
                             << shape[dim];
  if (scatter && failed(expectShape(op, op->getResult(0), shape))) // C3
    return failure();
  if (backward && failed(expectShape(op, whole, integers(op, "input_sizes"))))
    return failure();
  shape[dim] = (end - start + step - 1) / step;
  return failure(failed(expectShape(op, piece, shape)) || failed(expectOneElementType(op)));
}

LogicalResult spmd::aten::verifySelect(Operation *op) {
  bool backward = isa<SelectBackwardOp>(op), scatter = isa<SelectScatterOp>(op);
  Value whole = backward ? op->getResult(0) : op->getOperand(0);
  Value row = backward ? op->getOperand(0) : scatter ? op->getOperand(1) : op->getResult(0);
  Shape shape = shapeOf(whole);
  int64_t dim = integer(op, "dim"), index = integer(op, "index");
  if (failed(expectDim(op, dim, shape.size()))) // C1
    return failure();
  if (index < 0 || index >= shape[dim])
    return op->emitOpError() << "has index " << index << " of a dimension of size " << shape[dim];
  if (scatter && failed(expectShape(op, op->getResult(0), shape))) // C2
    return failure();
  if (backward && failed(expectShape(op, whole, integers(op, "input_sizes"))))
    return failure();
  shape.erase(shape.begin() + dim);
  return failure(failed(expectShape(op, row, shape)) || failed(expectOneElementType(op)));
}

LogicalResult spmd::aten::verifySplit(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0));
  int64_t dim = integer(op, "dim"), left = 0;
  if (failed(expectDim(op, dim, shape.size()))) // C1
    return failure();
  left = shape[dim];
  for (auto [index, piece] : llvm::enumerate(op->getResults())) { // C2
    int64_t size = 0;
    if (auto split = dyn_cast<SplitTensorOp>(op))
      size = std::min<int64_t>(split.getSplitSize(), left);
    else if (index < cast<SplitWithSizesOp>(op).getSplitSizes().size())
      size = cast<SplitWithSizesOp>(op).getSplitSizes()[index];
    shape[dim] = size;
    left -= size;
    if (failed(expectShape(op, piece, shape)))
      return failure();
  }
  if (left != 0 || op->getNumResults() == 0)
    return op->emitOpError() << "leaves " << left << " of the dimension's rows";
  return expectOneElementType(op);
}

LogicalResult spmd::aten::verifyCat(Operation *op) {
  Shape shape = shapeOf(op->getResult(0));
  int64_t dim = integer(op, "dim"), rows = 0;
  if (failed(expectDim(op, dim, shape.size()))) // C1
    return failure();
  for (Value tensor : op->getOperands()) { // C2
    Shape piece = shapeOf(tensor);
    if (piece.size() != shape.size())
      return op->emitOpError() << "has " << typeOf(tensor) << " for " << typeOf(op->getResult(0));
    rows += piece[dim];
    piece[dim] = shape[dim];
    if (piece != shape)
      return op->emitOpError() << "has " << typeOf(tensor) << " for " << typeOf(op->getResult(0));
  }
  shape[dim] = rows;
  return failure(failed(expectShape(op, op->getResult(0), shape)) || failed(expectOneElementType(op)));
}

LogicalResult spmd::aten::verifyStack(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("needs a tensor");
  Shape shape = shapeOf(op->getOperand(0));
  for (Value tensor : op->getOperands()) // C1
    if (failed(expectShape(op, tensor, shape)))
      return failure();
  int64_t dim = integer(op, "dim");
  if (failed(expectDim(op, dim, shape.size() + 1))) // C2
    return failure();
  shape.insert(shape.begin() + dim, op->getNumOperands());
  return failure(failed(expectShape(op, op->getResult(0), shape)) || failed(expectOneElementType(op)));
}

LogicalResult spmd::aten::verifyFlip(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0));
  int64_t rank = shape.size();
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : integers(op, "dims")) { // C1
    if (failed(expectDim(op, dim, rank)))
      return failure();
    if (std::exchange(seen[dim], true))
      return op->emitOpError() << "names dimension " << dim << " twice";
  }
  return failure(failed(expectShape(op, op->getResult(0), shape)) || failed(expectOneElementType(op))); // C2
}

LogicalResult spmd::aten::verifyFull(Operation *op) {
  return expectShape(op, op->getResult(0), integers(op, "size")); // C1
}

LogicalResult spmd::aten::verifyScalarTensor(Operation *op) { return expectShape(op, op->getResult(0), {}); }

LogicalResult spmd::aten::verifyArange(Operation *op) {
  auto number = [&](StringRef name) { return getScalarValue(op->getAttr(name)); };
  double step = number("step");
  if (step == 0) // C1
    return op->emitOpError("has step 0");
  int64_t count = std::max<int64_t>(0, std::ceil((number("end") - number("start")) / step));
  return expectShape(op, op->getResult(0), {count}); // C2
}

LogicalResult spmd::aten::verifyConstant(Operation *op) {
  auto value = cast<ShapedType>(cast<ConstantOp>(op).getValue().getType());
  RankedTensorType result = typeOf(op->getResult(0));
  if (value.getShape() != result.getShape() || value.getElementType() != result.getElementType()) // C1
    return op->emitOpError() << "has value of type " << value << " for " << result;
  return success();
}
