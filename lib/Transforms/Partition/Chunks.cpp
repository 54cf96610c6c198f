//===- Chunks.cpp - flat values of a unit ---------------------------------===//
//
// [Note: chunks]
// A list op over a unit's parameters becomes one op on the unit's chunk, whatever
// pieces of parameters a rank has. The op computes on the whole chunk even if its
// list names some of the parameters only; the other segments are then don't-care.
// Where chunks of several ops meet, each segment is taken from the op that computed
// it: a select by a constant table, which fuses into the op that follows.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

RankedTensorType Partitioner::getChunkType(int64_t number, Type dtype) const {
  const Unit &unit = step.units[number];
  AxisState state = AxisState::replicated();
  if (unit.sharded) {
    state = AxisState::owned();
    state.chunk = unit.layout.getPadded() / step.ranks;
  }
  return getLocalType(RankedTensorType::get({unit.layout.getPadded()}, dtype), state);
}

RankedTensorType Partitioner::getTableType(int64_t unit, Type dtype, AxisState state) const {
  return getLocalType(RankedTensorType::get({step.units[unit].numSegments()}, dtype), state);
}

FailureOr<Value> Partitioner::assemble(int64_t unit, ArrayRef<Member> members) {
  // Whether each member is an entry of a table, or a segment of a chunk.
  auto isEntry = [&](Value value) {
    auto carrier = carriers.find(value);
    if (carrier != carriers.end())
      return carrier->second.isTable;
    return cast<RankedTensorType>(value.getType()).getRank() == 0 && !domain.getWanted(value);
  };
  bool isTable = isEntry(members.front().second);
  SmallVector<Member> loose;
  for (const Member &member : members) {
    if (isEntry(member.second) != isTable)
      return emitError(loc) << "list mixes parameters' values and numbers (" << describeSource(loc) << ")";
    if (!carriers.count(member.second))
      loose.push_back(member);
  }
  if (isTable && !loose.empty())
    return stackTable(unit, members);
  if (!loose.empty() && failed(reduceGradients(unit, loose)))
    return failure();

  llvm::MapVector<Value, SmallVector<int64_t>> parts;
  for (const Member &member : members) {
    const Carrier &carrier = carriers.find(member.second)->second;
    if (carrier.place != Place{unit, member.first})
      return emitError(loc) << "an update of one parameter takes the value of another, of which a rank holds other "
                               "elements ("
                            << describeSource(loc)
                            << "); keep a moving average in buffers of the model, or update it outside of the step";
    parts[carrier.value].push_back(member.first);
  }
  return merge(unit, isTable, std::move(parts));
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
  Type dtype = cast<RankedTensorType>(first.getType()).getElementType();
  return create<aten::StackOp>(getTableType(unit, dtype, AxisState::replicated()), entries,
                               builder.getI64IntegerAttr(0));
}

} // namespace spmd::partition
