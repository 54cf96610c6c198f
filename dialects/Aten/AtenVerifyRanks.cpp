//===- AtenVerifyRanks.cpp - Verifier of collectives of the user's --------===//

#include "dialects/Aten/AtenRanks.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd::aten;

LogicalResult spmd::aten::verifyAmongRanks(Operation *op) {
  RankedTensorType self = typeOf(op->getOperand(0)), result = typeOf(op->getResult(0));
  auto kind = op->getAttrOfType<StringAttr>("kind");
  int64_t ranks = op->getAttrOfType<IntegerAttr>("ranks").getInt();
  if (kind && !llvm::is_contained({"sum", "avg", "max", "min"}, kind.getValue())) // C1
    return op->emitOpError() << "has the kind " << kind << ", expected sum, avg, max or min";
  if (kind && (self.getElementType().isInteger(1) || (kind == "avg" && !isa<FloatType>(self.getElementType()))))
    return op->emitOpError() << "has the kind " << kind << " of " << self;
  if (ranks <= 0) // C2
    return op->emitOpError() << "is among " << ranks << " ranks";
  SmallVector<int64_t> shape(self.getShape());
  if (!isa<C10dAllReduceOp>(op)) {
    if (shape.empty() || (isa<C10dReduceScatterOp>(op) && shape.front() % ranks != 0))
      return op->emitOpError() << "cannot cut " << self << " for " << ranks << " ranks";
    shape.front() = isa<C10dAllGatherOp>(op) ? shape.front() * ranks : shape.front() / ranks;
  }
  if (result.getShape() != ArrayRef(shape) || result.getElementType() != self.getElementType()) // C3
    return op->emitOpError() << "makes " << result << " of " << self << " on " << ranks << " ranks";
  return success();
}
