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
  if (isa<SliceOp, MaskOp, AllGatherOp, aten::CheckIndexOp>(op))
    return true;
  auto iface = dyn_cast<aten::AtenOpInterface>(op);
  return iface && iface.movesElements();
}

static void narrow(std::optional<int64_t> &bound, int64_t size) { bound = bound ? std::min(*bound, size) : size; }

IndexUse findIndexUse(BlockArgument argument) {
  IndexUse use;
  auto rows = [](Operation *op, unsigned operand, int64_t dim) {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    return type.getDimSize(dim < 0 ? dim + type.getRank() : dim);
  };
  // What import found, also where numbers are computed from the input.
  if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
    if (auto bound = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kIndexBoundAttr))
      use.bound = bound.getInt();
  llvm::SetVector<Value> reached;
  reached.insert(argument);
  for (size_t i = 0; i < reached.size(); ++i)
    for (OpOperand &operand : reached[i].getUses()) {
      Operation *op = operand.getOwner();
      unsigned number = operand.getOperandNumber();
      llvm::StringRef name = op->getName().getStringRef();
      if (name == "aten.check_index") {
        narrow(use.bound, op->getAttrOfType<IntegerAttr>("high").getInt());
        if (auto ignored = op->getAttrOfType<IntegerAttr>("ignore_index"))
          use.ignored = ignored.getInt();
      }
      if (movesElements(op)) {
        reached.insert(op->result_begin(), op->result_end());
      } else if (name == "aten.embedding" && number == 1) {
        narrow(use.bound, rows(op, 0, 0));
      } else if (name == "aten.embedding_dense_backward" && number == 1) {
        narrow(use.bound, op->getAttrOfType<IntegerAttr>("num_weights").getInt());
      } else if (name == "aten.gather_rows" && number == 1) {
        narrow(use.bound, rows(op, 0, op->getAttrOfType<IntegerAttr>("batch_dims").getInt()));
      } else if (name == "aten.scatter_rows" && number + 2 == op->getNumOperands()) {
        narrow(use.bound, op->getAttrOfType<IntegerAttr>("rows").getInt());
      } else if (name == "aten.nll_loss_forward" && number == 1) {
        narrow(use.bound, rows(op, 0, -1));
        use.ignored = op->getAttrOfType<IntegerAttr>("ignore_index").getInt();
      } else if (name == "aten.nll_loss_backward" && number == 2) {
        narrow(use.bound, rows(op, 1, -1));
      }
    }
  return use;
}

} // namespace spmd::interp
