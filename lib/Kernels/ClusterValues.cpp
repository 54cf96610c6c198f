//===- ClusterValues.cpp - values at a place of a cluster -----------------===//

#include "ClusterValues.h"
#include "ElementEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

ClusterValues::ClusterValues(CodeBuilder &b, ClusterOp op, ArrayRef<Value> operands, ArrayRef<Value> results)
    : b(b), op(op), operands(operands), results(results), schedule(op), dims(op.getDims()) {
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    operandAccess.push_back(AccessMap::get(op.getOperandMap(i)));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    resultAccess.push_back(AccessMap::get(op.getResultMap(i)));
  position.assign(dims.size(), Value());
}

ClusterValues::Roots ClusterValues::getRoots() const {
  Roots roots;
  for (const Root &root : schedule.getRoots())
    roots.push_back(&root);
  return roots;
}

void ClusterValues::emitInvariant(const Roots &roots, const llvm::SmallBitVector &changing, int64_t width) {
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value))
      if (!schedule.getVarying(value).anyCommon(changing))
        getValue(value, width, scopes.back());
}

/// `value` at the current position: known already, or emitted and kept in `scope`.
Value ClusterValues::getValue(Value value, int64_t width, Scope &scope) {
  if (Value known = scope.lookup(value))
    return known;
  for (Scope &outer : llvm::reverse(scopes))
    if (Value known = outer.lookup(value))
      return known;
  Value emitted;
  if (Value waiting = loadKept(value, width)) {
    emitted = waiting;
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    emitted = loadOperand(argument.getArgNumber(), width);
  } else if (auto reduce = value.getDefiningOp<ReduceOp>()) {
    emitted = loadReduction(reduce, width);
  } else if (auto index = value.getDefiningOp<IndexOp>()) {
    Value i = position[index.getDim()];
    emitted = index.getDim() == laneDim ? emitIota(b, i, width) : i;
  } else if (auto coord = value.getDefiningOp<CoordOp>()) {
    emitted = b.getCoordinate(coord.getAxis());
  } else if (auto compare = value.getDefiningOp<arith::CmpIOp>(); compare && isLaneNumber(compare.getLhs(), width)) {
    emitted = emitLaneCompare(compare, width, scope);
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

/// Whether `value` is the position along the lanes' dim.
bool ClusterValues::isLaneNumber(Value value, int64_t width) const {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto index = value.getDefiningOp<IndexOp>();
  return width > 1 && index && index.getDim() == laneDim && dims[index.getDim()] < (int64_t(1) << 31);
}

/// A comparison of the position with something that is the same for all lanes (a class number): in 32 bits, between the
/// lane numbers and the distance from the first, where 64-bit positions would take twice the registers.
Value ClusterValues::emitLaneCompare(arith::CmpIOp compare, int64_t width, Scope &scope) {
  Value other = getValue(compare.getRhs(), width, scope);
  arith::CmpIPredicate predicate = compare.getPredicate();
  bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
  if (isa<VectorType>(other.getType()) || isUnsigned)
    return emitElementOp(b, *compare, {getValue(compare.getLhs(), width, scope), other});
  if (!other.getType().isInteger(64))
    other = arith::ExtSIOp::create(b, b.getI64Type(), other);
  // Both are in [-1, 2^31), so their difference fits.
  Value bounded = b.min(b.max(other, b.i64(-1)), b.i64(dims[*laneDim]));
  Value narrow = arith::SubIOp::create(b, arith::TruncIOp::create(b, b.getI32Type(), bounded),
                                       arith::TruncIOp::create(b, b.getI32Type(), position[*laneDim]));
  auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, width));
  auto type = VectorType::get({width}, b.getI32Type());
  Value iota = b.constant(DenseElementsAttr::get(type, ArrayRef<int32_t>(lanes)));
  return arith::CmpIOp::create(b, predicate, iota, b.broadcast(narrow, width));
}

/// Index of `map` at the current position; dims that are not open are not used by what is asked for.
Value ClusterValues::emitIndex(AffineMap map) {
  SmallVector<Value> known;
  for (Value p : position)
    known.push_back(p ? p : b.i64(0));
  return b.affine(map.getResult(0), known);
}

/// An element where `index` is inside the tensor, else 0. The load itself is always inside.
Value ClusterValues::loadGuarded(unsigned i, Value index) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Value last = b.i64(type.getNumElements() - 1);
  Value clamped = b.min(b.max(index, b.i64(0)), last);
  Value value = b.load(operands[i], type.getElementType(), clamped);
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, clamped, index);
  return arith::SelectOp::create(b, inside, value, b.number(value.getType(), 0));
}

Value ClusterValues::loadOperand(unsigned i, int64_t width) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Type element = type.getElementType();
  AffineMap map = op.getOperandMap(i);
  bool guarded = llvm::is_contained(op.getGuarded(), i);
  std::optional<int64_t> stride;
  if (laneDim)
    stride = operandAccess[i].getStride(*laneDim);
  auto loadOne = [&] {
    Value index = emitIndex(map);
    return guarded ? loadGuarded(i, index) : b.load(operands[i], element, index);
  };
  // What does not vary along the lanes is loaded as a scalar.
  if (width == 1 || !laneDim || !position[*laneDim] || stride == 0)
    return loadOne();
  auto loadLanes = [&] {
    Value start = position[*laneDim];
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < width; ++l) {
      position[*laneDim] = b.add(start, l);
      lanes.push_back(loadOne());
    }
    position[*laneDim] = start;
    return b.pack(lanes);
  };
  if (stride != 1)
    return loadLanes();
  Value index = emitIndex(map);
  if (!guarded)
    return b.load(operands[i], element, index, width, getAlignment(map, element, width));
  // All lanes inside: one vector; else lane by lane.
  Value above = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, b.i64(0));
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, index, b.i64(type.getNumElements() - width));
  Value inside = arith::AndIOp::create(b, above, below);
  auto choice = scf::IfOp::create(b, getWideType(element, width), inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, b.load(operands[i], element, index, width, getAlignment(map, element, width)));
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loadLanes());
  return choice.getResult(0);
}

void ClusterValues::storeAt(unsigned result, Value value, Value index, int64_t alignment) {
  b.store(value, results[result], index, alignment);
}

void ClusterValues::storeResult(unsigned result, Value value, int64_t width) {
  AffineMap map = op.getResultMap(result);
  if (width == 1 || resultAccess[result].getStride(*laneDim) == 1) {
    storeAt(result, value, emitIndex(map), getAlignment(map, getElementTypeOrSelf(value.getType()), width));
    return;
  }
  Value start = position[*laneDim];
  for (int64_t l = 0; l < width; ++l) {
    position[*laneDim] = b.add(start, l);
    storeAt(result, b.lane(value, l), emitIndex(map), /*alignment=*/0);
  }
  position[*laneDim] = start;
}

//===----------------------------------------------------------------------===//
// Reductions in memory
//===----------------------------------------------------------------------===//

SmallVector<unsigned> ClusterValues::getMemoryDims(ReduceOp reduce) const {
  SmallVector<unsigned> out;
  for (unsigned d : nest)
    if (d > *llvm::min_element(reduce.getOver()) && schedule.getVarying(reduce).test(d))
      out.push_back(d);
  return out;
}

int64_t ClusterValues::getMemoryCount(ReduceOp reduce) const {
  int64_t count = 1;
  for (unsigned d : getMemoryDims(reduce))
    count *= dims[d];
  return count;
}

Value ClusterValues::getMemoryIndex(ReduceOp reduce) {
  Value index = b.i64(0);
  for (unsigned d : getMemoryDims(reduce))
    index = b.add(b.mul(index, dims[d]), position[d]);
  return index;
}

void ClusterValues::combineInMemory(ReduceOp reduce, Value pointer, Value value, int64_t alignment) {
  auto vector = dyn_cast<VectorType>(value.getType());
  Value index = getMemoryIndex(reduce);
  Value old = b.load(pointer, reduce.getType(), index, vector ? vector.getNumElements() : 1, alignment);
  b.store(b.combine(reduce.getKind(), old, value), pointer, index, alignment);
}

} // namespace spmd::kernel
