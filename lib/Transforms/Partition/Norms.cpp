//===- Norms.cpp - norms of gradients, for clipping -----------------------===//
//
// [Note: clipping]
// Each rank has pieces of the gradients, so the norm of a gradient is a partial
// one (norm2 or max) from its unit's chunk. Stacking partial norms and taking the
// norm of them keeps them partial: one number is all-reduced in the end. Norms of other
// orders than 2 and infinity are taken of whole gradients.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace spmd::partition {

/// Norms of values that are wanted in a unit's chunk; their order is one that combines over ranks.
LogicalResult Partitioner::emitNorm(Operation *op, int64_t unit, ArrayRef<std::pair<Member, Value>> parts) {
  ReduceKind kind = *getNormKind(op);
  SmallVector<Member> members;
  for (auto &[member, result] : parts)
    members.push_back(member);
  FailureOr<Value> chunk = assembleChunk(unit, members);
  if (failed(chunk))
    return failure();
  Value &table = norms[{*chunk, static_cast<int>(kind)}];
  if (!table) {
    Unit &owner = step.units[unit];
    AxisState state = owner.sharded ? step.onShardAxis(AxisState::partial(kind)) : AxisState::replicated();
    Type dtype = typeOf(parts.front().second).getElementType();
    table = create<SegmentNormOp>(getTableType(unit, dtype, state), *chunk,
                                  FlatSymbolRefAttr::get(owner.op.getSymNameAttr()),
                                  ReduceKindAttr::get(builder.getContext(), kind));
  }
  for (auto &[member, result] : parts) {
    carriers[result] = {table, Place{unit, member.first}, true};
    states[result] = *partition::getState(table.getType());
  }
  return success();
}

/// A stack of all entries of some tables, of which only the norm is used: the
/// order does not matter, so the tables themselves are joined.
bool Partitioner::emitStackOfTables(Operation *op) {
  if (!isa<aten::StackOp>(op) || op->use_empty() || !llvm::all_of(op->getUsers(), OwnerDomain::isFullNorm))
    return false;
  llvm::MapVector<Value, llvm::SmallSet<int64_t, 8>> tables;
  for (Value operand : op->getOperands()) {
    auto carrier = carriers.find(operand);
    if (carrier == carriers.end() || !carrier->second.isTable ||
        !tables[carrier->second.value].insert(carrier->second.place.segment).second)
      return false;
  }
  AxisState state = getState(op->getOperand(0));
  SmallVector<Value> parts;
  for (auto &[table, entries] : tables) {
    if (static_cast<int64_t>(entries.size()) != typeOf(table).getDimSize(0) ||
        *partition::getState(table.getType()) != state)
      return false;
    parts.push_back(table);
  }
  Value joined = parts.front();
  if (parts.size() > 1)
    joined = create<aten::CatOp>(getLocalType(typeOf(op->getResult(0)), state), parts, builder.getI64IntegerAttr(0));
  setLocal(op->getResult(0), state, joined);
  return true;
}

} // namespace spmd::partition
