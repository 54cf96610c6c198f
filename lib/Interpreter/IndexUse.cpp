//===- IndexUse.cpp - which row numbers an integer input may hold ---------===//

#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Interpreter/Inputs.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::interp {

/// The op hands on elements of its operands without changing them.
static bool movesElements(Operation *op) {
  if (isa<SliceOp, MaskOp, aten::CheckIndexOp>(op))
    return true;
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return !combines(collective.getCollectiveKind());
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  return iface && iface.movesElements();
}

IndexUse findIndexUse(BlockArgument argument) {
  IndexUse use;
  // What import found, also where numbers are computed from the input.
  if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
    if (auto bound = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kIndexBoundAttr))
      use.bound = bound.getInt();
  llvm::SetVector<Value> reached;
  reached.insert(argument);
  for (size_t i = 0; i < reached.size(); ++i)
    for (OpOperand &operand : reached[i].getUses()) {
      Operation *op = operand.getOwner();
      auto iface = dyn_cast<aten::AtenOpInterface>(op);
      if (std::optional<aten::RowNumbers> numbers = iface ? iface.getRowNumbers(operand) : std::nullopt) {
        use.bound = std::min(use.bound.value_or(numbers->bound), numbers->bound);
        if (numbers->ignored)
          use.ignored = numbers->ignored;
      }
      if (movesElements(op))
        reached.insert(op->result_begin(), op->result_end());
    }
  return use;
}

} // namespace spmd::interp
