//===- Gradients.cpp - from partial gradients to the chunk ----------------===//
//
// [Note: gradients]
// All gradients of a unit are packed into one flat buffer and reduced by one
// collective, right after the last of them is computed. The pack moves no bytes:
// the plan lets each producer write its gradient where the pack has it.
//
// Which values are wanted in the chunk is known only once all ops are placed, so the
// step is emitted twice: the first time records the wanted values, and the ops that
// depend on reduced ones. The second time these ops come last, and the first that
// wants a gradient of a unit takes all of the unit's along.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

LogicalResult Partitioner::reduceGradients(int64_t unit, ArrayRef<Member> requested) {
  llvm::append_range(recorded.gradients[unit], requested);
  if (current)
    recorded.late.insert(current);
  // Take along whatever else is ready and wanted, one value per segment.
  SmallVector<Value> bySegment(step.units[unit].numSegments());
  for (const Member &member : requested)
    bySegment[member.first] = member.second;
  for (const Member &member : known.gradients[unit])
    if (!bySegment[member.first] && states.count(member.second) && !carriers.count(member.second))
      bySegment[member.first] = member.second;

  SmallVector<Member> partial, whole;
  for (auto [index, value] : llvm::enumerate(bySegment)) {
    if (!value)
      continue;
    SegmentAttr segmentAttr = step.units[unit].layout.getSegments()[index];
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != segmentAttr.getShape())
      return emitError(loc) << "a gradient of type " << type << " is used with parameter '" << segmentAttr.getName()
                            << "' (" << describeSource(loc) << ")";
    if (type.getNumElements() == 0)
      return emitError(loc)
             << "parameter '" << segmentAttr.getName() << "' of shape [" << segmentAttr.getShape()
             << "] has no elements that the optimizer could update; freeze it with requires_grad_(False)";
    AxisState state = getState(value);
    bool isSum = state.isVarying() || (state.isPartial() && state.kind == ReduceKind::sum);
    (isSum ? partial : whole).push_back({static_cast<int64_t>(index), value});
  }
  Value chunk;
  for (bool isPartial : {true, false}) {
    ArrayRef<Member> members = isPartial ? partial : whole;
    if (members.empty())
      continue;
    Value piece = packAndReduce(unit, members, isPartial);
    // Each pack is zero where the other has values.
    chunk = chunk ? create<aten::AddTensorOp>(chunk.getType(), chunk, piece, builder.getI64IntegerAttr(1)) : piece;
  }
  for (auto [index, value] : llvm::enumerate(bySegment))
    if (value)
      carriers[value] = {chunk, Place{unit, static_cast<int64_t>(index)}, false};
  return success();
}

Value Partitioner::packAndReduce(int64_t number, ArrayRef<Member> members, bool partial) {
  Unit &unit = step.units[number];
  AxisState summands = step.isLocalView ? AxisState::varying() : AxisState::partial(ReduceKind::sum);
  AxisState state = partial ? summands : AxisState::replicated();
  SmallVector<Value> values;
  SmallVector<Attribute> names;
  Operation *last = nullptr;
  for (const Member &member : members) {
    values.push_back(get(member.second, state));
    names.push_back(builder.getStringAttr(unit.layout.getSegments()[member.first].getName()));
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
  Type dtype = cast<RankedTensorType>(values.front().getType()).getElementType();
  auto flatType = RankedTensorType::get({unit.layout.getPadded()}, dtype);
  Value flat = create<PackOp>(getLocalType(flatType, state), values, name, builder.getArrayAttr(names));
  RankedTensorType chunkType = getChunkType(number, dtype);
  auto zero = builder.getI64IntegerAttr(0), one = builder.getI64IntegerAttr(1);
  auto rows = builder.getI64IntegerAttr(chunkType.getDimSize(0));
  if (partial && unit.sharded)
    flat = create<ReduceScatterOp>(chunkType, flat, step.meshRef(), step.axes(), name,
                                   ReduceKindAttr::get(builder.getContext(), ReduceKind::sum), zero, one, rows);
  else if (partial)
    flat = allReduce(flat, flatType, ReduceKind::sum, name);
  else if (unit.sharded)
    flat = create<SliceOp>(chunkType, flat, step.meshRef(), step.axes(), zero, one, rows);
  if (partial && step.isLocalView)
    flat = average(flat);
  loc = locHere;
  segment = segmentHere;
  return flat;
}

} // namespace spmd::partition
