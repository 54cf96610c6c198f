//===- AtenLocalize.cpp - Size attributes on local shapes -----------------===//

#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd::aten;

LogicalResult spmd::aten::keepAttributes(Operation *, TypeRange) { return success(); }

LogicalResult spmd::aten::keepShape(Operation *op, TypeRange types) {
  return success(tensorType(op->getResult(0)).getShape() == cast<RankedTensorType>(types.front()).getShape());
}

LogicalResult spmd::aten::localizeShape(Operation *op, StringRef attr, TypeRange types) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(types.front()).getShape();
  op->setAttr(attr, DenseI64ArrayAttr::get(op->getContext(), shape));
  return success();
}

LogicalResult spmd::aten::localizeSlice(Operation *op, TypeRange types) {
  auto result = cast<RankedTensorType>(types.front());
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt();
  int64_t start = cast<IntegerAttr>(op->getAttr("start")).getInt();
  int64_t end = cast<IntegerAttr>(op->getAttr("end")).getInt();
  int64_t step = cast<IntegerAttr>(op->getAttr("step")).getInt();
  // The dimension the slice is taken from, or put into, as the attributes
  // still know it.
  bool intoResult = isa<SliceBackwardOp, SliceScatterOp>(op);
  int64_t before = tensorType(op->getResult(0)).getDimSize(dim);
  if (result.getDimSize(dim) != before) {
    // Only a slice of everything may have been sharded.
    if (start != 0 || step != 1 || end != before)
      return failure();
    op->setAttr("end", Builder(op->getContext()).getI64IntegerAttr(result.getDimSize(dim)));
  }
  if (intoResult && op->hasAttr("input_sizes"))
    return localizeShape(op, "input_sizes", types);
  return success();
}
