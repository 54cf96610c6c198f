//===- Chunks.cpp - flat values of a unit ---------------------------------===//
//
// [Note: chunks]
// A list op over a unit's parameters becomes one op on the unit's chunk, whatever
// pieces of parameters a rank has. The op computes on the whole chunk even if its
// list names some of the parameters only; the other segments are then don't-care.
// Where chunks of several ops meet, each segment is taken from the op that computed
// it: a select by a constant table, which fuses into the op that follows. A value that
// is on no chunk, or on that of another parameter, is brought there first
// ([Note: gradients]), so that an op on chunks may read whatever it likes.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

RankedTensorType Partitioner::getChunkType(int64_t number, Type dtype) const {
  const Unit &unit = step.units[number];
  AxisState state = AxisState::replicated();
  if (unit.sharded) {
    state = step.onShardAxis(AxisState::owned());
    state.chunk = unit.layout.getPadded() / step.shardRanks;
  }
  return getLocalType(RankedTensorType::get({unit.layout.getPadded()}, dtype), state);
}

RankedTensorType Partitioner::getFlatType(int64_t number, Type dtype) const {
  return getLocalType(RankedTensorType::get({step.units[number].layout.getPadded()}, dtype), AxisState::replicated());
}

RankedTensorType Partitioner::getTableType(int64_t unit, Type dtype, AxisState state) const {
  return getLocalType(RankedTensorType::get({step.units[unit].numSegments()}, dtype), state);
}

Value Partitioner::findChunk(Value value, Place place) const {
  auto carrier = carriers.find(value);
  if (carrier != carriers.end() && !carrier->second.isTable && carrier->second.place == place)
    return carrier->second.value;
  return placed.lookup({value, {place.unit, place.segment}});
}

bool Partitioner::isTable(int64_t unit, ArrayRef<Member> members) const {
  auto rankOf = [](Value value) { return typeOf(value).getRank(); };
  if (llvm::any_of(members, [&](const Member &member) { return rankOf(member.second) != 0; }))
    return false;
  ArrayRef<SegmentAttr> segments = step.units[unit].layout.getSegments();
  if (llvm::any_of(members, [&](const Member &member) { return !segments[member.first].getShape().empty(); }))
    return true;
  // All are numbers, of parameters that are numbers.
  return llvm::any_of(members, [&](const Member &member) {
    auto carrier = carriers.find(member.second);
    return carrier != carriers.end() && carrier->second.isTable;
  });
}

FailureOr<Value> Partitioner::assembleChunk(int64_t unit, ArrayRef<Member> members) {
  SmallVector<Member> loose;
  for (const Member &member : members)
    if (!findChunk(member.second, {unit, member.first}))
      loose.push_back(member);
  if (!loose.empty() && failed(bringHome(unit, loose)))
    return failure();
  llvm::MapVector<Value, SmallVector<int64_t>> parts;
  for (const Member &member : members)
    parts[findChunk(member.second, {unit, member.first})].push_back(member.first);
  return merge(unit, /*isTable=*/false, std::move(parts));
}

Value Partitioner::assembleTable(int64_t unit, ArrayRef<Member> members) {
  llvm::MapVector<Value, SmallVector<int64_t>> parts;
  for (const Member &member : members) {
    auto carrier = carriers.find(member.second);
    if (carrier == carriers.end() || !carrier->second.isTable || carrier->second.place != Place{unit, member.first})
      return stackTable(unit, members);
    parts[getWholeTable(carrier->second.value)].push_back(member.first);
  }
  return merge(unit, /*isTable=*/true, std::move(parts));
}

/// A table of partial norms, reduced.
Value Partitioner::getWholeTable(Value table) {
  AxisState state = *partition::getState(table.getType());
  if (!state.isPartial())
    return table;
  Value &whole = wholeTables[table];
  if (!whole)
    whole = allReduce(table, typeOf(table), state, {});
  return whole;
}

Value Partitioner::merge(int64_t unit, bool isTable, llvm::MapVector<Value, SmallVector<int64_t>> parts) {
  Value merged = parts.front().first;
  auto name = FlatSymbolRefAttr::get(step.units[unit].op.getSymNameAttr());
  for (auto &[part, segments] : llvm::drop_begin(parts)) {
    SmallVector<bool> chosen(step.units[unit].numSegments(), false);
    for (int64_t index : segments)
      chosen[index] = true;
    RankedTensorType tableType = getTableType(unit, builder.getI1Type(), AxisState::replicated());
    auto plain = RankedTensorType::get(tableType.getShape(), builder.getI1Type());
    Value mask = create<aten::ConstantOp>(tableType, DenseElementsAttr::get(plain, ArrayRef<bool>(chosen)));
    if (!isTable)
      mask = create<SegmentBroadcastOp>(getChunkType(unit, builder.getI1Type()), mask, name);
    merged = create<aten::WhereSelfOp>(merged.getType(), mask, part, merged);
  }
  return merged;
}

/// A table of numbers that are values of their own; a segment without one gets the
/// first.
Value Partitioner::stackTable(int64_t unit, ArrayRef<Member> members) {
  Value first = get(members.front().second, AxisState::replicated());
  SmallVector<Value> entries(step.units[unit].numSegments(), first);
  for (const Member &member : members)
    entries[member.first] = get(member.second, AxisState::replicated());
  Type dtype = typeOf(first).getElementType();
  return create<aten::StackOp>(getTableType(unit, dtype, AxisState::replicated()), entries,
                               builder.getI64IntegerAttr(0));
}

} // namespace spmd::partition
