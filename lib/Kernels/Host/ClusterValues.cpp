//===- ClusterValues.cpp - values inside the loops of a cluster -----------===//

#include "ClusterEmitter.h"
#include "../ElementEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace spmd::kernel {

/// Emits, before the loop of nest level `level`, what `roots` need and that loop and those inside it do not change.
void ClusterEmitter::emitInvariant(const Roots &roots, unsigned level) {
  llvm::SmallBitVector changing(dims.size());
  for (unsigned l = level; l < nest.size(); ++l)
    changing.set(nest[l]);
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value))
      if (!schedule.getVarying(value).anyCommon(changing))
        getValue(value, 1, scopes.back());
}

/// `value` at the current position: known already, or emitted and kept in `scope`.
Value ClusterEmitter::getValue(Value value, int64_t width, Scope &scope) {
  if (Value known = scope.lookup(value))
    return known;
  for (Scope &outer : llvm::reverse(scopes))
    if (Value known = outer.lookup(value))
      return known;
  Value emitted;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    emitted = loadOperand(argument.getArgNumber(), width);
  } else if (auto reduce = value.getDefiningOp<ReduceOp>()) {
    SmallVector<unsigned> memoryDims = getMemoryDims(reduce);
    bool wide = !memoryDims.empty() && memoryDims.back() == innermostDim();
    emitted = b.load(memory.lookup(reduce), reduce.getType(), getMemoryIndex(reduce), wide ? width : 1);
  } else if (auto index = value.getDefiningOp<IndexOp>()) {
    Value i = position[index.getDim()];
    emitted = index.getDim() == innermostDim() ? emitIota(b, i, width) : i;
  } else if (auto coord = value.getDefiningOp<CoordOp>()) {
    emitted = b.getCoordinate(coord.getAxis());
  } else {
    Operation *def = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : def->getOperands())
      operands.push_back(getValue(operand, width, scope));
    emitted = emitElementOp(b, *def, operands);
  }
  scope[value] = emitted;
  return emitted;
}

/// Index of `map` at the current position; dims that are not open are not used by what is asked for.
Value ClusterEmitter::emitIndex(AffineMap map) {
  SmallVector<Value> known;
  for (Value p : position)
    known.push_back(p ? p : b.i64(0));
  return b.affine(map.getResult(0), known);
}

/// An element where `index` is inside the tensor, else 0. The load itself is always inside.
Value ClusterEmitter::loadGuarded(unsigned i, Value index) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Value last = b.i64(type.getNumElements() - 1);
  Value clamped = b.min(b.max(index, b.i64(0)), last);
  Value value = b.load(arguments.operands[i], type.getElementType(), clamped);
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, clamped, index);
  return arith::SelectOp::create(b, inside, value, b.number(value.getType(), 0));
}

Value ClusterEmitter::loadOperand(unsigned i, int64_t width) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Type element = type.getElementType();
  AffineMap map = op.getOperandMap(i);
  bool guarded = llvm::is_contained(op.getGuarded(), i);
  std::optional<int64_t> stride;
  if (!nest.empty())
    stride = operandAccess[i].getStride(innermostDim());
  auto loadOne = [&] {
    Value index = emitIndex(map);
    return guarded ? loadGuarded(i, index) : b.load(arguments.operands[i], element, index);
  };
  // What does not vary along the innermost dim is loaded as a scalar.
  if (width == 1 || !position[innermostDim()] || stride == 0)
    return loadOne();
  auto loadLanes = [&] {
    Value start = position[innermostDim()];
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < width; ++l) {
      position[innermostDim()] = b.add(start, l);
      lanes.push_back(loadOne());
    }
    position[innermostDim()] = start;
    return b.pack(lanes);
  };
  if (stride != 1)
    return loadLanes();
  Value index = emitIndex(map);
  if (!guarded)
    return b.load(arguments.operands[i], element, index, width);
  // All lanes inside: one vector; else lane by lane.
  Value above = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, b.i64(0));
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, index, b.i64(type.getNumElements() - width));
  Value inside = arith::AndIOp::create(b, above, below);
  auto choice = scf::IfOp::create(b, getWideType(element, width), inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, b.load(arguments.operands[i], element, index, width));
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loadLanes());
  return choice.getResult(0);
}

void ClusterEmitter::storeResult(const Root &root, Value value, int64_t width) {
  Value pointer = arguments.results[root.result];
  AffineMap map = op.getResultMap(root.result);
  if (width == 1 || resultAccess[root.result].getStride(innermostDim()) == 1) {
    b.store(value, pointer, emitIndex(map));
    return;
  }
  Value start = position[innermostDim()];
  for (int64_t l = 0; l < width; ++l) {
    position[innermostDim()] = b.add(start, l);
    b.store(b.lane(value, l), pointer, emitIndex(map));
  }
  position[innermostDim()] = start;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool ClusterEmitter::isInnermost(ReduceOp reduce) const {
  return llvm::is_contained(reduce.getOver(), static_cast<int64_t>(innermostDim()));
}

bool ClusterEmitter::needsMemory(ReduceOp reduce) const {
  return reduce.getOver().size() > 1 || reduce.getOver().front() != static_cast<int64_t>(dims.size() - 1);
}

/// Dims inside the outermost loop of the reduction along which its result varies.
SmallVector<unsigned> ClusterEmitter::getMemoryDims(ReduceOp reduce) const {
  SmallVector<unsigned> out;
  for (unsigned d = *llvm::min_element(reduce.getOver()) + 1; d < dims.size(); ++d)
    if (schedule.getVarying(reduce).test(d))
      out.push_back(d);
  return out;
}

Value ClusterEmitter::getMemoryIndex(ReduceOp reduce) {
  Value index = b.i64(0);
  for (unsigned d : getMemoryDims(reduce))
    index = b.add(b.mul(index, dims[d]), position[d]);
  return index;
}

void ClusterEmitter::clearMemory(ReduceOp reduce) {
  int64_t count = 1;
  for (unsigned d : getMemoryDims(reduce))
    count *= dims[d];
  Value pointer = memory.lookup(reduce);
  auto fill = [&](Value from, Value to, int64_t width) {
    Value neutral = b.neutral(reduce.getKind(), getWideType(reduce.getType(), width));
    b.loop(from, to, width, [&](Value i) { b.store(neutral, pointer, i); });
  };
  Value whole = b.i64(count - count % kLanes);
  fill(b.i64(0), whole, kLanes);
  fill(whole, b.i64(count), 1);
}

void ClusterEmitter::accumulate(ReduceOp reduce, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  Value pointer = memory.lookup(reduce), index = getMemoryIndex(reduce);
  Value old = b.load(pointer, reduce.getType(), index, vector ? vector.getNumElements() : 1);
  b.store(b.combine(reduce.getKind(), old, value), pointer, index);
}

} // namespace spmd::kernel
