//===- ListOp.cpp - Merging list ops --------------------------------------===//

#include "ListOp.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace spmd;

aten::ListOpInterface spmd::asMergeableList(Operation *op) {
  auto list = dyn_cast<aten::ListOpInterface>(op);
  if (!list || list.getUnitAttr() || list.getResultLists().size() != 1 || list.getOperandLists().empty() ||
      list.getLength() == 0)
    return {};
  bool sharesNumber =
      llvm::all_of(list.getShared().getTypes(), [](Type type) { return cast<RankedTensorType>(type).getRank() == 0; });
  return sharesNumber ? list : aten::ListOpInterface();
}

aten::ListOpInterface spmd::createListOp(OpBuilder &builder, Location loc, StringRef name,
                                         ArrayRef<SmallVector<Value>> lists, Value shared, TypeRange types,
                                         ArrayRef<NamedAttribute> attrs) {
  SmallVector<Value> operands;
  for (const SmallVector<Value> &list : lists)
    operands.append(list);
  if (shared)
    operands.push_back(shared);
  OperationState state(loc, name, operands, types, attrs);
  return cast<aten::ListOpInterface>(builder.create(state));
}

LogicalResult spmd::hoistBefore(Value value, Operation *point) {
  // Definitions that stand after the point, users before what they use.
  llvm::SetVector<Operation *> late;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || def->isBeforeInBlock(point) || late.contains(def))
      continue;
    if (def == point)
      return failure();
    late.insert(def);
    llvm::append_range(work, def->getOperands());
  }
  SmallVector<Operation *> ordered = late.takeVector();
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *def : ordered)
    def->moveBefore(point);
  return success();
}
