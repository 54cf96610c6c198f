//===- ListOps.cpp - positions of optimizer list ops ----------------------===//

#include "ListOps.h"

#include "dialects/Aten/AtenOptim.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace spmd::partition {

bool ListOp::isListOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.starts_with("aten._foreach_") || name.starts_with("aten._fused_");
}

/// Fused ops name the sizes of their operand and result groups; the learning
/// rates, one per param group, are the only group that is no list.
static ListOp getFused(Operation *op) {
  bool isSgd = isa<aten::FusedSgdOp>(op);
  unsigned rates = isSgd ? 3 : 6;
  ListOp list{op, 0, {}, {}, op->getOperands().take_front(0), rates, false};
  unsigned start = 0;
  auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
  for (auto [number, size] : llvm::enumerate(sizes.asArrayRef())) {
    OperandRange range = op->getOperands().slice(start, size);
    if (number == rates)
      list.shared = range;
    else
      list.operandLists.push_back(range);
    start += size;
  }
  list.length = list.operandLists.front().size();
  start = 0;
  sizes = op->getAttrOfType<DenseI32ArrayAttr>("resultSegmentSizes");
  for (int32_t size : sizes.asArrayRef()) {
    list.resultLists.push_back(op->getResults().slice(start, size));
    start += size;
  }
  return list;
}

ListOp ListOp::get(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name.starts_with("aten._fused_"))
    return getFused(op);
  // All foreach ops have one result per position; overload .Tensor has one tensor
  // for all of them at the end.
  int64_t length = op->getNumResults();
  int64_t shared = name.ends_with(".Tensor") ? 1 : 0;
  int64_t lists = (op->getNumOperands() - shared) / std::max<int64_t>(length, 1);
  ListOp list{op,
              length,
              {},
              {op->getResults()},
              op->getOperands().take_back(shared),
              lists,
              name.starts_with("aten._foreach_norm")};
  for (int64_t i = 0; i < lists; ++i)
    list.operandLists.push_back(op->getOperands().slice(i * length, length));
  return list;
}

} // namespace spmd::partition
