//===- SameAcross.cpp - gradients that ranks do not sum -------------------===//

#include "SameAcross.h"
#include "States.h"

#include "dialects/Aten/Aten.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace spmd::partition {

bool isAddition(Operation *op) {
  auto pointwise = dyn_cast<aten::AtenOpInterface>(op);
  if (!pointwise || !pointwise.isPointwise())
    return false;
  FailureOr<aten::ShardingRule> rule = pointwise.getShardingRule();
  return succeeded(rule) && rule->linearity == aten::Linearity::additive;
}

Operation *findAdditionOfSame(Value value, const Sums &sums) {
  DenseSet<Operation *> seen;
  for (SmallVector<Value> reached = {value}; !reached.empty();) {
    Operation *op = reached.pop_back_val().getDefiningOp();
    if (!op || isa<AllReduceOp>(op) || !seen.insert(op).second)
      continue;
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return sums.contains(operand); })) {
      llvm::append_range(reached, op->getOperands());
      continue;
    }
    return isAddition(op) ? op : nullptr;
  }
  return nullptr;
}

/// Whether `value` is an argument of the batch, or all ranks' rows of one.
static bool isBatch(func::FuncOp func, Value value) {
  if (auto gather = value.getDefiningOp<AllGatherOp>())
    value = gather.getInput();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && getArgRole<BatchAttr>(func, argument.getArgNumber());
}

std::string describeSame(func::FuncOp func, Operation *addition, const Sums &sums) {
  SmallVector<Value> reached;
  for (Value operand : addition->getOperands())
    if (!sums.contains(operand))
      reached.push_back(operand);
  DenseSet<Operation *> seen;
  Value rows;
  while (!reached.empty()) {
    Operation *op = reached.pop_back_val().getDefiningOp();
    // A sum over the ranks, as a loss that scales a penalty, is none of a rank's rows.
    if (!op || isa<AllReduceOp>(op) || !seen.insert(op).second)
      continue;
    // The first of the step's, for an order that does not depend on the walk's.
    bool isRows =
        op->getNumResults() == 1 && llvm::any_of(op->getOperands(), [&](Value v) { return isBatch(func, v); });
    if (isRows && (!rows || op->isBeforeInBlock(rows.getDefiningOp())))
      rows = isa<AllGatherOp>(op) ? rows : op->getResult(0);
    llvm::append_range(reached, op->getOperands());
  }
  if (!rows)
    return "get a term that is equal on all ranks along the first axis, such as a penalty on parameters";
  std::string text;
  llvm::raw_string_ostream(text) << "get a term that all ranks along the first axis compute equally from "
                                 << RankedTensorType::get(getGlobalShape(rows.getType()), getElementTypeOrSelf(rows))
                                 << ", rows of the batch that are not cut over the ranks (a part of it needs a row for "
                                    "each rank)";
  return text;
}

} // namespace spmd::partition
