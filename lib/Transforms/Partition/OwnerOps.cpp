//===- OwnerOps.cpp - pointwise ops on chunks -----------------------------===//
//
// [Note: one op for all parameters]
// A loop over parameters (`p -= lr * p.grad`, gradients that are added to those of the
// call before) has an op for each of them. On the unit's chunk these are the same op on
// the same operands, and one of them computes all segments: n ops, and the selects
// between them, would read the chunk n times. Loops chain, so the operands of the next
// op are one as well, and so are numbers that a loop computes from the same numbers again.
// The elements of a segment are computed as before.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;

namespace spmd::partition {

/// Of a parameter without dimensions: numbers of other dtypes decide the result's, which they do not beside a chunk.
static bool promotesOtherwise(ArrayRef<int64_t> shape, ValueRange operands, Value result) {
  auto differs = [&](Value operand) {
    Type own = typeOf(operand).getElementType();
    return isa<FloatType>(own) && own != typeOf(operands.front()).getElementType();
  };
  if (!shape.empty() || operands.size() < 2)
    return false;
  return llvm::any_of(operands, differs) || differs(result);
}

/// The value is a segment of a chunk already.
bool Partitioner::isOnChunk(Value value) const {
  auto carrier = carriers.find(value);
  return carrier != carriers.end() && !carrier->second.isTable;
}

/// What an operand of the op repeats, if that is one number that all ranks have: what backward does with the gradient
/// of a sum. With a local view it is a gradient, which is scaled on its way to the chunk; and a number of another type
/// would not promote as what repeats it does.
Value Partitioner::getRepeated(Operation *op, Value value) const {
  auto expand = value.getDefiningOp<aten::ExpandOp>();
  if (!expand || step.isLocalView || typeOf(expand.getSelf()).getNumElements() != 1 ||
      !getState(expand.getSelf()).isReplicated())
    return value;
  Type type = typeOf(value).getElementType();
  bool isOneType = llvm::all_of(op->getOperandTypes(), [&](Type t) { return getElementTypeOrSelf(t) == type; });
  return isOneType ? Value(expand.getSelf()) : value;
}

/// An op on chunks reads the value as one number for all elements of `shape`.
bool Partitioner::isNumber(Operation *op, Value value, ArrayRef<int64_t> shape) const {
  value = getRepeated(op, value);
  if (typeOf(value).getShape() != shape)
    return true;
  return shape.empty() && !isOnChunk(value) && !domain.getWanted(value);
}

/// A gradient that all ranks have alike, made of parameters and numbers, is scaled as it comes to the chunk
/// (scaleSameGradient), so it is not made there.
bool Partitioner::isGradientToScale(Operation *op) const {
  return step.isLocalView && step.gradientDivideFactor != static_cast<double>(step.ranks) &&
         getPhase(op) == StepPhase::backward && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isParameter(operand) || (!isOnChunk(operand) && getState(operand).isReplicated());
         });
}

/// A pointwise op runs on chunks when its result is at home, unless it can run on
/// gradients that are not reduced yet, so that one reduction serves more of them;
/// or when an operand is on a chunk already.
bool Partitioner::runsAtHome(Operation *op, Place &place) const {
  if (!runsOnChunks(op))
    return false;
  ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  if (promotesOtherwise(shape, op->getOperands(), op->getResult(0)) ||
      llvm::all_of(op->getOperands(), [&](Value operand) { return isNumber(op, operand, shape); }))
    return false;
  if (isGradientToScale(op))
    return false;
  std::optional<Place> home = domain.getHome(op->getResult(0));
  auto isOwn = [&](Value operand) { return getState(operand).isVarying() && !isAveraged(operand); };
  if (!home && llvm::any_of(op->getOperands(), isOwn))
    return false; // each rank's own, and so is the result
  if (!home) {
    Value first = op->getOperand(0);
    if (std::optional<Place> own = domain.getHome(first);
        own && OwnerDomain::isNeutral(op) && !isParameter(first) && first.getType() == op->getResult(0).getType()) {
      place = *own;
      return true;
    }
    for (Value operand : op->getOperands())
      if (isOnChunk(operand) && !isParameter(operand) && operand.getType() == op->getResult(0).getType()) {
        place = carriers.find(operand)->second.place;
        return true;
      }
    return false;
  }
  place = *home;
  // A gradient, for its parameter's master: what is reduced is in the parameter's type, or in the unit's.
  if (auto copy = dyn_cast<aten::ToCopyOp>(op);
      copy && typeOf(copy.getOperand()).getElementType() == step.units[place.unit].layout.getDtype() &&
      copy.getDtype() != step.units[place.unit].layout.getDtype())
    return true;
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return isOnChunk(operand); }))
    return true;
  FailureOr<aten::ShardingRule> rule = cast<aten::ShardingOpInterface>(op).getShardingRule();
  if (failed(rule))
    return true;
  auto isSummand = [&](Value operand) { return getState(operand).isPartial() || getState(operand).isVarying(); };
  unsigned partials = llvm::count_if(op->getOperands(), isSummand);
  if (rule->linearity == aten::Linearity::additive)
    return partials != 0 && partials != op->getNumOperands();
  // gradient × number
  bool scales = rule->linearity == aten::Linearity::multilinear && llvm::is_contained(rule->multilinearOperands, 0u) &&
                !domain.isNormed(op->getOperand(0)) && (partials == 0 || isSummand(op->getOperand(0)));
  return !scales || partials > 1;
}

/// The op, or one that was emitted before and is equal, which takes its place.
Operation *Partitioner::takeFirstOfEqual(Operation *op) {
  Operation *first = *pointwiseOps.insert(op).first;
  if (first != op)
    op->erase();
  return first;
}

LogicalResult Partitioner::emitAtHome(Operation *op, Place place) {
  ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isNumber(op, operand, shape)) {
      // A chunk has one dimension: [1, 1] would give it two.
      Value number = getRepeated(op, operand);
      auto type = typeOf(number);
      Value whole = get(number, AxisState::replicated());
      auto one = RankedTensorType::get({1}, type.getElementType());
      operands.push_back(type.getRank() > 1 ? view(whole, one, AxisState::replicated()) : whole);
      continue;
    }
    FailureOr<Value> chunk = assembleChunk(place.unit, {Member(place.segment, operand)});
    if (failed(chunk))
      return failure();
    operands.push_back(*chunk);
  }
  Value result = op->getResult(0);
  Type dtype = typeOf(result).getElementType();
  RankedTensorType type = getChunkType(place.unit, dtype);
  states[result] = *partition::getState(type);
  // Casts of what lies in one chunk are one.
  Value *cast = isa<aten::ToCopyOp>(op) ? &casts[{operands.front(), dtype}] : nullptr;
  Value chunk = cast ? *cast : Value();
  if (!chunk)
    chunk = takeFirstOfEqual(cloneOnto(op, operands, type))->getResult(0);
  if (cast)
    *cast = chunk;
  carriers[result] = {chunk, place, false};
  return success();
}

} // namespace spmd::partition
