//===- Gradients.cpp - from values to the chunk ---------------------------===//
//
// [Note: gradients]
// A gradient that outlives the step is its parameter's state, in a chunk like any other; or ranks have summands of it
// (Step::summands), an argument and a result that is a partial sum: what is added to it stays one, and is reduced as
// gradients are where the optimizer wants it.
//
// All gradients of a unit are packed into one flat buffer and reduced by one
// collective, right after the last of them is computed. The pack moves no bytes:
// the plan lets each producer write its gradient where the pack has it.
//
// On a mesh of two axes the sum that a rank has after the reduce-scatter is that of the ranks along the shard axis; an
// all-reduce of the chunk adds up those of the others.
//
// Whatever else is wanted in the chunk is packed whole, in its own dtype, and each rank
// takes its part: gradients that every rank has (of a penalty alone), masks, buffers,
// other parameters, and a parameter's second gradient (of two losses, kept apart),
// which is reduced on the way.
//
// Where a unit's precision says in which type gradients are reduced, they are packed and added up in it, and the sum is
// cast to the parameters' type. A gradient that was cast from that very type (the cast of a parameter, backwards) is
// taken before its cast: widening and narrowing again changes no bit. Any other cast goes where its operand is: a model
// casts its parameters before it begins, so autograd casts their gradients when all of backward is done. What an
// optimizer that keeps masters casts to their type again is the sum itself.
//
// Which values are wanted in the chunk is known only once all ops are placed, so the
// step is emitted twice: the first time records the wanted values, and the ops that
// depend on reduced ones. The second time these ops come last, and the first that
// wants a value of a unit takes along all of its kind that the unit wants.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

/// The unit's reduction can take the value: a sum that is not added up yet, of the parameter's shape and the unit's
/// dtype.
bool Partitioner::isGradient(int64_t number, const Member &member) const {
  const Unit &unit = step.units[number];
  AxisState state = getState(member.second);
  bool isSum = state.isVarying() ? isAveraged(member.second) : state == AxisState::partial(ReduceKind::sum);
  auto type = typeOf(member.second);
  return isSum && !unitIsReduced[number] && type.getElementType() == unit.layout.getDtype() &&
         type.getShape() == unit.layout.getSegments()[member.first].getShape();
}

/// `requested`, and whatever else of the unit is wanted, ready and `accepted`: one value per segment, in order.
SmallVector<Member> Partitioner::takeAlong(int64_t unit, ArrayRef<Member> requested,
                                           function_ref<bool(const Member &)> accepted) const {
  SmallVector<Value> bySegment(step.units[unit].numSegments());
  for (const Member &member : requested)
    bySegment[member.first] = member.second;
  for (const Member &member : known.wanted[unit])
    if (!bySegment[member.first] && states.count(member.second) && accepted(member) &&
        !findChunk(member.second, {unit, member.first}))
      bySegment[member.first] = member.second;
  SmallVector<Member> members;
  for (auto [index, value] : llvm::enumerate(bySegment))
    if (value)
      members.push_back({static_cast<int64_t>(index), value});
  return members;
}

LogicalResult Partitioner::bringHome(int64_t number, ArrayRef<Member> requested) {
  Unit &unit = step.units[number];
  llvm::append_range(recorded.wanted[number], requested);
  if (current)
    recorded.late.insert(current);
  SmallVector<Member> gradients;
  llvm::MapVector<Type, SmallVector<Member>> whole;
  for (const Member &member : requested) {
    SegmentAttr segmentAttr = unit.layout.getSegments()[member.first];
    if (ShapedType::getNumElements(segmentAttr.getShape()) == 0)
      return emitError(loc)
             << "parameter '" << segmentAttr.getName() << "' of shape [" << segmentAttr.getShape()
             << "] has no elements that the optimizer could update; freeze it with requires_grad_(False)";
    Type dtype = typeOf(member.second).getElementType();
    (isGradient(number, member) ? gradients : whole[dtype]).push_back(member);
  }
  if (!gradients.empty()) {
    gradients = takeAlong(number, gradients, [&](const Member &member) { return isGradient(number, member); });
    Value chunk = packAndReduce(number, gradients, /*partial=*/true);
    for (const Member &member : gradients)
      if (!carriers.try_emplace(member.second, Carrier{chunk, Place{number, member.first}, false}).second)
        placed[{member.second, {number, member.first}}] = chunk;
    unitIsReduced[number] = isFinal;
  }
  for (auto &[dtype, members] : whole) {
    SmallVector<Member> all = takeAlong(number, members, [&, dtype = dtype](const Member &member) {
      return !isGradient(number, member) && typeOf(member.second).getElementType() == dtype;
    });
    Value chunk = packAndReduce(number, all, /*partial=*/false);
    for (const Member &member : all)
      placed[{member.second, {number, member.first}}] = chunk;
  }
  return success();
}

/// The value on every rank, filled up to `type`'s shape. A gradient that the unit's reduction does not take is reduced
/// alone.
Value Partitioner::getWhole(Value value, RankedTensorType type) {
  auto own = typeOf(value);
  bool fills = own.getShape() == type.getShape(), isSame = getState(value).isReplicated();
  if (fills && getState(value).isVarying() && isAveraged(value) && !carriers.count(value)) {
    Value sum = allReduce(get(value, AxisState::varying()), own, AxisState::partial(ReduceKind::sum), {});
    locals.erase(value);
    setLocal(value, AxisState::replicated(), divideGradient(sum));
  }
  takeReduced(value);
  Value whole = get(value, AxisState::replicated());
  if (isSame)
    whole = scaleSameGradient(value, whole);
  if (fills)
    return whole;
  return create<aten::ExpandOp>(getLocalType(type, AxisState::replicated()), whole,
                                builder.getDenseI64ArrayAttr(type.getShape()));
}

/// Of a cast from `dtype` what it casts, else the value.
static Value getSourceOfType(Value value, FloatType dtype) {
  auto copy = value.getDefiningOp<aten::ToCopyOp>();
  bool isFrom = copy && typeOf(copy.getOperand()).getElementType() == dtype;
  return isFrom ? copy.getOperand() : value;
}

Value Partitioner::castTo(Value value, FloatType dtype) {
  auto type = typeOf(value);
  return type.getElementType() == dtype ? value : create<aten::ToCopyOp>(type.clone(dtype), value, dtype);
}

/// A cast, moved to where its operand is computed.
static void hoistCast(Value value) {
  auto copy = value.getDefiningOp<aten::ToCopyOp>();
  Operation *source = copy ? copy.getOperand().getDefiningOp() : nullptr;
  if (source && source->getBlock() == copy->getBlock() && getSegment(source) == getSegment(copy))
    copy->moveAfter(source);
}

/// Chunks that are sums along the shard axis, summed along the axes before it.
Value Partitioner::sumAcross(Value chunk, RankedTensorType type, FlatSymbolRefAttr unit) {
  Attribute kinds = ReduceKindAttr::get(builder.getContext(), ReduceKind::sum);
  auto op = create<AllReduceOp>(TypeRange{type}, ValueRange{chunk}, step.meshRef(), step.replicateAxes, unit,
                                builder.getArrayAttr(kinds));
  return op->getResult(0);
}

Value Partitioner::packAndReduce(int64_t number, ArrayRef<Member> members, bool partial) {
  Unit &unit = step.units[number];
  AxisState summands = step.isLocalView ? AxisState::varying() : AxisState::partial(ReduceKind::sum);
  AxisState state = partial ? summands : AxisState::replicated();
  SmallVector<Value> values;
  SmallVector<Attribute> names;
  Operation *last = nullptr;
  Type dtype = typeOf(members.front().second).getElementType();
  FloatType reduceType = partial ? unit.reduceType : FloatType();
  for (const Member &member : members) {
    SegmentAttr segmentAttr = unit.layout.getSegments()[member.first];
    auto type = RankedTensorType::get(segmentAttr.getShape(), dtype);
    values.push_back(partial ? get(member.second, state) : getWhole(member.second, type));
    if (reduceType)
      values.back() = getSourceOfType(values.back(), reduceType);
    hoistCast(values.back());
    names.push_back(builder.getStringAttr(segmentAttr.getName()));
    Operation *producer = values.back().getDefiningOp();
    if (producer && (!last || last->isBeforeInBlock(producer)))
      last = producer;
  }
  // Right after the unit's last gradient, as part of its segment.
  OpBuilder::InsertionGuard guard(builder);
  Location locHere = loc;
  Attribute segmentHere = segment;
  if (last) {
    builder.setInsertionPointAfter(last);
    loc = last->getLoc();
    segment = last->getAttr(kSegmentAttr);
  }
  auto name = FlatSymbolRefAttr::get(unit.op.getSymNameAttr());
  if (reduceType) {
    dtype = reduceType;
    for (Value &value : values)
      value = castTo(value, reduceType);
  }
  auto flatType = RankedTensorType::get({unit.layout.getPadded()}, dtype);
  Value flat = create<PackOp>(getLocalType(flatType, state), values, name, builder.getArrayAttr(names));
  RankedTensorType chunkType = getChunkType(number, dtype);
  auto zero = builder.getI64IntegerAttr(0), one = builder.getI64IntegerAttr(1);
  auto rows = builder.getI64IntegerAttr(chunkType.getDimSize(0));
  if (partial && unit.sharded) {
    RankedTensorType sumType = chunkType;
    if (step.replicateAxes)
      sumType = getLocalType(flatType, partition::getState(chunkType)->within(AxisState::Outer::partial));
    flat = create<ReduceScatterOp>(sumType, flat, step.meshRef(), step.shardAxes, name,
                                   ReduceKindAttr::get(builder.getContext(), ReduceKind::sum), zero, one, rows);
    if (step.replicateAxes)
      flat = sumAcross(flat, chunkType, name);
  } else if (partial) {
    flat = allReduce(flat, flatType, AxisState::partial(ReduceKind::sum), name);
  } else if (unit.sharded) {
    flat = create<SliceOp>(chunkType, flat, step.meshRef(), step.shardAxes, zero, one, rows);
  }
  if (partial && step.isLocalView)
    flat = divideGradient(flat);
  if (reduceType) {
    Value sum = flat;
    flat = castTo(sum, cast<FloatType>(unit.layout.getDtype()));
    casts[{flat, reduceType}] = sum;
  }
  loc = locHere;
  segment = segmentHere;
  return flat;
}

} // namespace spmd::partition
