//===- ListOp.cpp - A list op as parallel lists ---------------------------===//

#include "ListOp.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace spmd;

bool ListOp::classof(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.starts_with("aten._foreach_") && !op->getAttr("unit") && op->getNumResults() > 0 &&
         name != "aten._foreach_addcmul.Tensor" && name != "aten._foreach_addcdiv.Tensor";
}

ListOp::ListOp(Operation *op) : op(op) {
  OperandRange operands = op->getOperands();
  if (getOverload() == "Tensor") {
    shared = operands.back();
    operands = operands.drop_back();
  }
  for (size_t begin = 0; begin < operands.size(); begin += size())
    lists.push_back(llvm::to_vector(operands.slice(begin, size())));
}

StringRef ListOp::getBase() const {
  StringRef name = op->getName().stripDialect();
  name.consume_front("_foreach_");
  return name.split('.').first;
}

StringRef ListOp::getOverload() const { return op->getName().stripDialect().split('.').second; }

Operation *spmd::createListOp(OpBuilder &builder, Location loc, StringRef name, ArrayRef<SmallVector<Value>> lists,
                              Value shared, TypeRange types, ArrayRef<NamedAttribute> attrs) {
  SmallVector<Value> operands;
  for (const SmallVector<Value> &list : lists)
    operands.append(list);
  if (shared)
    operands.push_back(shared);
  OperationState state(loc, ("aten." + name).str(), operands, types, attrs);
  return builder.create(state);
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
