//===- AtenVerifyHeavy.cpp - Verifiers of reductions, products, lists -----===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd::aten;

using Shape = SmallVector<int64_t>;

static LogicalResult expectDim(Operation *op, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < std::max<int64_t>(rank, 1))
    return success();
  return op->emitOpError() << "has dimension " << dim << " of a tensor of rank " << rank;
}

LogicalResult spmd::aten::verifyReduction(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0)), kept;
  Shape dims;
  if (auto list = dyn_cast<DenseI64ArrayAttr>(op->getAttr("dim")))
    dims.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else
    dims.push_back(cast<IntegerAttr>(op->getAttr("dim")).getInt());
  bool keepdim = cast<BoolAttr>(op->getAttr("keepdim")).getValue();
  int64_t rank = shape.size(), last = -1;
  for (int64_t dim : dims) { // C1
    if (dim <= last || dim >= rank)
      return op->emitOpError() << "has dim [" << ArrayRef<int64_t>(dims)
                               << "], expected ascending dimensions of a tensor of rank " << rank;
    last = dim;
  }
  for (int64_t dim = 0; dim < rank; ++dim) { // C2
    if (!llvm::is_contained(dims, dim))
      kept.push_back(shape[dim]);
    else if (keepdim)
      kept.push_back(1);
  }
  for (Value result : op->getResults())
    if (failed(expectShape(op, result, kept)))
      return failure();
  if (auto dtype = op->getAttrOfType<TypeAttr>("dtype")) // C3
    if (typeOf(op->getResult(0)).getElementType() != dtype.getValue())
      return op->emitOpError() << "has result " << typeOf(op->getResult(0)) << ", expected element type "
                               << dtype.getValue();
  return success();
}

LogicalResult spmd::aten::verifyScan(Operation *op) {
  Shape shape = shapeOf(op->getOperand(0));
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt(), rank = shape.size();
  if (dim < 0 || dim >= rank) // C1
    return op->emitOpError() << "has dimension " << dim << " of a tensor of rank " << rank;
  for (Value result : op->getResults()) // C2
    if (failed(expectShape(op, result, shape)))
      return failure();
  return success();
}

LogicalResult spmd::aten::verifyContraction(Operation *op) {
  unsigned count = op->getNumOperands();
  RankedTensorType left = typeOf(op->getOperand(count - 2)), right = typeOf(op->getOperand(count - 1));
  int64_t rank = isa<MmOp, AddmmOp>(op) ? 2 : 3;
  if (left.getRank() != rank || right.getRank() != rank || left.getDimSize(rank - 1) != right.getDimSize(rank - 2) ||
      (rank == 3 && left.getDimSize(0) != right.getDimSize(0))) // C1
    return op->emitOpError() << "cannot multiply " << left << " and " << right;
  Shape shape(left.getShape());
  shape.back() = right.getShape().back();
  if (failed(expectShape(op, op->getResult(0), shape))) // C2
    return failure();
  if (count == 3) {
    RankedTensorType bias = typeOf(op->getOperand(0));
    bool fits = bias.getRank() <= rank;
    for (auto [mine, theirs] : llvm::zip(llvm::reverse(bias.getShape()), llvm::reverse(shape)))
      fits &= mine == theirs || mine == 1;
    if (!fits)
      return op->emitOpError() << "cannot add " << bias << " to " << typeOf(op->getResult(0));
  }
  for (Value operand : op->getOperands()) // C3
    if (typeOf(operand).getElementType() != typeOf(op->getResult(0)).getElementType())
      return op->emitOpError() << "has " << typeOf(operand) << " and result " << typeOf(op->getResult(0));
  return success();
}

LogicalResult spmd::aten::verifyGrouped(Operation *op) {
  auto outer = dyn_cast<GroupedOuterOp>(op);
  RankedTensorType left = typeOf(op->getOperand(0)), right = typeOf(op->getOperand(1));
  RankedTensorType groups = typeOf(op->getOperand(2)), result = typeOf(op->getResult(0));
  bool fits = left.getRank() == 2 && right.getRank() == (outer ? 2 : 3) &&
              right.getDimSize(outer ? 0 : 1) == left.getDimSize(outer ? 0 : 1);
  if (!fits) // C1
    return op->emitOpError() << "cannot multiply " << left << " and " << right;
  if (groups.getShape() != left.getShape().take_front(1) ||
      !(groups.getElementType().isInteger(64) || groups.getElementType().isInteger(32))) // C2
    return op->emitOpError() << "has groups " << groups << ", expected an i64 or i32 for each of "
                             << left.getDimSize(0) << " rows";
  Shape shape = outer ? Shape{static_cast<int64_t>(outer.getNumGroups()), left.getDimSize(1), right.getDimSize(1)}
                      : Shape{left.getDimSize(0), right.getDimSize(2)};
  if (failed(expectShape(op, op->getResult(0), shape))) // C3
    return failure();
  if (left.getElementType() != result.getElementType() || right.getElementType() != result.getElementType()) // C4
    return op->emitOpError() << "has " << left << ", " << right << " and result " << result;
  return success();
}

LogicalResult spmd::aten::verifyLayerNorm(Operation *op) {
  auto forward = dyn_cast<NativeLayerNormOp>(op);
  auto backward = dyn_cast<NativeLayerNormBackwardOp>(op);
  Value input = forward ? forward.getInput() : backward.getInput();
  ArrayRef<int64_t> inner = forward ? forward.getNormalizedShape() : backward.getNormalizedShape();
  Shape shape = shapeOf(input);
  if (inner.size() > shape.size() || ArrayRef(shape).take_back(inner.size()) != inner) // C1
    return op->emitOpError() << "normalizes [" << inner << "] of " << typeOf(input);
  Shape statistics = shape;
  std::fill(statistics.end() - inner.size(), statistics.end(), 1);
  auto check = [&](Value value, ArrayRef<int64_t> expected) {
    return succeeded(expectShape(op, value, expected));
  };
  if (forward) // C2, C3
    return success(check(forward.getMean(), statistics) && check(forward.getRstd(), statistics) &&
                   check(forward.getWeight(), inner) && check(forward.getBias(), inner) &&
                   check(forward.getOut(), shape));
  return success(check(backward.getGradOut(), shape) && check(backward.getMean(), statistics) &&
                 check(backward.getRstd(), statistics) && check(backward.getWeight(), inner) &&
                 check(backward.getBias(), inner) && check(backward.getGradInput(), shape) &&
                 check(backward.getGradWeight(), inner) && check(backward.getGradBias(), inner));
}

LogicalResult spmd::aten::verifyEmbedding(Operation *op) {
  auto backward = dyn_cast<EmbeddingDenseBackwardOp>(op);
  Value table = backward ? op->getResult(0) : op->getOperand(0);
  Value rows = backward ? op->getOperand(0) : op->getResult(0);
  RankedTensorType indices = typeOf(op->getOperand(1));
  if (!isa<IntegerType>(indices.getElementType())) // C1
    return op->emitOpError() << "has indices " << indices << ", expected integers";
  if (typeOf(table).getRank() != 2) // C2
    return op->emitOpError() << "has table " << typeOf(table) << ", expected a matrix";
  if (backward && typeOf(table).getDimSize(0) != static_cast<int64_t>(backward.getNumWeights()))
    return op->emitOpError() << "has result " << typeOf(table) << ", expected " << backward.getNumWeights() << " rows";
  Shape shape(indices.getShape());
  shape.push_back(typeOf(table).getDimSize(1));
  return expectShape(op, rows, shape);
}

LogicalResult spmd::aten::verifySoftmax(Operation *op) {
  Shape shape = shapeOf(op->getResult(0));
  for (Value operand : op->getOperands()) // C1
    if (failed(expectShape(op, operand, shape)))
      return failure();
  return expectDim(op, cast<IntegerAttr>(op->getAttr("dim")).getInt(), shape.size()); // C2
}

static LogicalResult expectReduction(Operation *op) {
  int64_t reduction = cast<IntegerAttr>(op->getAttr("reduction")).getInt();
  if (reduction >= 0 && reduction <= 2)
    return success();
  return op->emitOpError() << "has reduction " << reduction << ", expected 0 (none), 1 (mean) or 2 (sum)";
}

LogicalResult spmd::aten::verifyNllLoss(Operation *op) {
  if (failed(expectReduction(op))) // C1
    return failure();
  auto forward = dyn_cast<NllLossForwardOp>(op);
  auto backward = dyn_cast<NllLossBackwardOp>(op);
  RankedTensorType self = typeOf(forward ? forward.getSelf() : backward.getSelf());
  RankedTensorType target = typeOf(forward ? forward.getTarget() : backward.getTarget());
  if (self.getRank() < 1 || self.getRank() > 2 || !target.getElementType().isInteger(64) ||
      target.getShape() != self.getShape().drop_back()) // C2
    return op->emitOpError() << "has self " << self << " and target " << target
                             << ", expected i64 targets for rows of class scores";
  bool reduced = cast<IntegerAttr>(op->getAttr("reduction")).getInt() != 0;
  ArrayRef<int64_t> loss = reduced ? ArrayRef<int64_t>() : target.getShape();
  if (forward) // C3
    return failure(failed(expectShape(op, forward.getOutput(), loss)) ||
                   failed(expectShape(op, forward.getTotalWeight(), {})));
  return failure(failed(expectShape(op, backward.getGradOutput(), loss)) ||
                 failed(expectShape(op, backward.getTotalWeight(), {})) ||
                 failed(expectShape(op, backward.getResult(), self.getShape())));
}

LogicalResult spmd::aten::verifyMseLoss(Operation *op) {
  if (failed(expectReduction(op))) // C1
    return failure();
  if (isa<MseLossBackwardOp>(op))
    return success();
  bool reduced = cast<IntegerAttr>(op->getAttr("reduction")).getInt() != 0;
  return reduced ? expectShape(op, op->getResult(0), {}) : success(); // C2
}

LogicalResult spmd::aten::verifyAttention(Operation *op) {
  auto forward = dyn_cast<SdpaOp>(op);
  auto backward = dyn_cast<SdpaBackwardOp>(op);
  Value query = forward ? forward.getQuery() : backward.getQuery();
  Value key = forward ? forward.getKey() : backward.getKey();
  Value value = forward ? forward.getValue() : backward.getValue();
  Value mask = forward ? forward.getAttnMask() : backward.getAttnMask();
  Shape q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  bool grouped = cast<BoolAttr>(op->getAttr("enable_gqa")).getValue();
  // C1
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != k[0] || k[0] != v[0] || k[1] != v[1] || q[3] != k[3] ||
      k[2] != v[2] || (grouped ? k[1] == 0 || q[1] % k[1] != 0 : q[1] != k[1]))
    return op->emitOpError() << "has query " << typeOf(query) << ", key " << typeOf(key) << " and value "
                             << typeOf(value);
  // C2
  Shape out{q[0], q[1], q[2], v[3]}, rows{q[0], q[1], q[2]};
  auto check = [&](Value result, ArrayRef<int64_t> expected) {
    return succeeded(expectShape(op, result, expected));
  };
  if (forward && (!check(forward.getOut(), out) || !check(forward.getLogsumexp(), rows)))
    return failure();
  if (backward &&
      (!check(backward.getGradOut(), out) || !check(backward.getOut(), out) || !check(backward.getLogsumexp(), rows) ||
       !check(backward.getGradQuery(), q) || !check(backward.getGradKey(), k) || !check(backward.getGradValue(), v) ||
       (backward.getGradMask() && !check(backward.getGradMask(), shapeOf(mask)))))
    return failure();
  if (!mask) // C3
    return success();
  Shape scores{q[0], q[1], q[2], k[2]}, given = shapeOf(mask);
  bool fits = given.size() <= 4;
  for (auto [mine, theirs] : llvm::zip(llvm::reverse(given), llvm::reverse(scores)))
    fits &= mine == theirs || mine == 1;
  if (!fits)
    return op->emitOpError() << "has mask " << typeOf(mask) << " for scores of shape [" << scores << "]";
  return success();
}

LogicalResult spmd::aten::verifyForeach(Operation *op) {
  bool chunk = op->hasAttr("unit");
  size_t positions = op->getNumResults();
  if (positions == 0 || op->getNumOperands() < positions)
    return op->emitOpError() << "has " << op->getNumOperands() << " operands and " << positions << " results";
  auto list = cast<ListOpInterface>(op);
  bool norm = list.isNorm();
  for (size_t i = 0; i < positions; ++i) { // C1
    Type self = op->getOperand(i).getType(), result = op->getResult(i).getType();
    if (!norm && self != result)
      return op->emitOpError() << "has result " << result << " at position " << i << ", expected " << self;
    if (norm && !chunk && typeOf(op->getResult(i)).getRank() != 0)
      return op->emitOpError() << "has result " << result << " at position " << i << ", expected a scalar";
  }
  if (chunk)
    return success();
  if (StringRef name = list.getScalarsName(); !name.empty()) // C2
    if (auto scalars = op->getAttrOfType<ArrayAttr>(name); scalars && scalars.size() != positions)
      return op->emitOpError() << "has " << scalars.size() << " entries in '" << name << "' and " << positions
                               << " positions";
  size_t inLists = op->getNumOperands() - list.getShared().size();
  if (inLists % positions != 0) // C4
    return op->emitOpError() << "has lists of different lengths: " << op->getNumOperands() << " operands for "
                             << positions << " positions";
  for (size_t i = 0; i < inLists; ++i) { // C3
    RankedTensorType self = typeOf(op->getOperand(i % positions)), other = typeOf(op->getOperand(i));
    if (other.getRank() != 0 && other.getShape() != self.getShape())
      return op->emitOpError() << "has " << other << " at position " << i % positions << " of " << self;
  }
  return success();
}

LogicalResult spmd::aten::verifyForeachMap(Operation *op) {
  auto map = cast<ForeachMapOp>(op);
  auto name = RegisteredOperationName::lookup(("aten." + map.getOp()).str(), op->getContext()); // C1
  if (!name || !name->hasInterface<AtenOpInterface>() || !name->hasTrait<OpTrait::OneResult>() ||
      name->hasInterface<ListOpInterface>())
    return op->emitOpError() << "applies '" << map.getOp() << "', expected a pointwise aten op";
  size_t positions = op->getNumResults(), operands = op->getNumOperands();
  if (positions == 0 || operands == 0 || operands % positions != 0) // C2
    return op->emitOpError() << "has " << operands << " operands and " << positions << " results";
  for (size_t i = 0; !op->hasAttr("unit") && i < operands; ++i) { // C3
    RankedTensorType operand = typeOf(op->getOperand(i)), result = typeOf(op->getResult(i % positions));
    if (operand.getNumElements() != 1 && operand.getShape() != result.getShape())
      return op->emitOpError() << "has " << operand << " at position " << i % positions << " of " << result;
  }
  return success();
}

LogicalResult spmd::aten::verifyFused(Operation *op) {
  auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes").asArrayRef();
  bool sgd = isa<FusedSgdOp>(op), chunk = op->hasAttr("unit");
  int64_t positions = sizes.front();
  // The last list is `lr`; before it in Adam, `state_steps`.
  size_t lists = sizes.size() - 1, offset = 0;
  for (size_t list = 0; list < lists; ++list) {
    if (sizes[list] != positions && sizes[list] != 0) // C1
      return op->emitOpError() << "has " << sizes[list] << " entries in list " << list << ", expected " << positions;
    bool steps = !sgd && list + 1 == lists;
    for (int64_t i = 0; i < sizes[list]; ++i) { // C2
      RankedTensorType entry = typeOf(op->getOperand(offset + i)), param = typeOf(op->getOperand(i));
      bool fits = steps ? entry.getRank() == (chunk ? 1 : 0) : entry.getShape() == param.getShape();
      if (!fits)
        return op->emitOpError() << "has " << entry << " at position " << i << " of list " << list
                                 << ", the parameter is " << param;
    }
    offset += sizes[list];
  }
  // C3
  size_t groups = op->getAttrOfType<DenseF64ArrayAttr>("weight_decay").size();
  for (StringRef name : {"lr_values", "beta1", "beta2", "eps", "momentum", "dampening"})
    if (auto values = op->getAttrOfType<DenseF64ArrayAttr>(name);
        values && static_cast<size_t>(values.size()) != groups)
      return op->emitOpError() << "has " << values.size() << " entries in '" << name << "' and " << groups
                               << " in 'weight_decay'";
  size_t rates = op->hasAttr("lr_values") ? 0 : groups;
  if (static_cast<size_t>(sizes.back()) != rates)
    return op->emitOpError() << "has " << sizes.back() << " learning rates as operands, expected " << rates;
  ArrayRef<int64_t> groupOf = op->getAttrOfType<DenseI64ArrayAttr>("groups").asArrayRef();
  if (!chunk && static_cast<int64_t>(groupOf.size()) != positions)
    return op->emitOpError() << "has " << groupOf.size() << " entries in 'groups', expected " << positions;
  for (int64_t group : groupOf)
    if (group < 0 || group >= static_cast<int64_t>(groups))
      return op->emitOpError() << "has group " << group << ", there are " << groups;
  return success();
}
