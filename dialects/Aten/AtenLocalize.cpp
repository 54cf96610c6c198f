//===- AtenLocalize.cpp - Size attributes on local shapes -----------------===//

#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd::aten;

LogicalResult spmd::aten::keepAttributes(Operation *, TypeRange) { return success(); }

LogicalResult spmd::aten::keepShape(Operation *op, TypeRange types) {
  return success(typeOf(op->getResult(0)).getShape() == cast<RankedTensorType>(types.front()).getShape());
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
  int64_t before = typeOf(op->getResult(0)).getDimSize(dim);
  if (result.getDimSize(dim) != before) {
    // Only everything, or whole parts of it that are each cut alike, may have been sharded.
    int64_t local = result.getDimSize(dim);
    if (step != 1 || start * local % before != 0 || end * local % before != 0)
      return failure();
    Builder builder(op->getContext());
    op->setAttr("start", builder.getI64IntegerAttr(start * local / before));
    op->setAttr("end", builder.getI64IntegerAttr(end * local / before));
  }
  if (intoResult && op->hasAttr("input_sizes"))
    return localizeShape(op, "input_sizes", types);
  return success();
}

LogicalResult spmd::aten::localizeSplit(Operation *op, TypeRange types) {
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt();
  Builder builder(op->getContext());
  SmallVector<int64_t> sizes;
  for (Type type : types)
    sizes.push_back(cast<RankedTensorType>(type).getDimSize(dim));
  if (isa<SplitWithSizesOp>(op)) {
    op->setAttr("split_sizes", builder.getDenseI64ArrayAttr(sizes));
    return success();
  }
  int64_t before = typeOf(op->getResult(0)).getDimSize(dim);
  if (sizes.front() == before)
    return success();
  int64_t size = cast<IntegerAttr>(op->getAttr("split_size")).getInt();
  if (size * sizes.front() % before != 0)
    return failure();
  op->setAttr("split_size", builder.getI64IntegerAttr(size * sizes.front() / before));
  return success();
}

bool spmd::aten::isShape(Operation *op, StringRef name, StringRef attr) {
  auto sizes = op->getAttrOfType<DenseI64ArrayAttr>(attr);
  return name == attr && sizes && sizes.asArrayRef() == typeOf(op->getResult(0)).getShape();
}

bool spmd::aten::isEndOfWhole(Operation *op, StringRef name) {
  std::optional<Pieces> pieces = cast<ShardingOpInterface>(op).getRowPieces();
  return name == "end" && pieces->start == 0 && pieces->step == 1 &&
         typeOf(op->getOperand(0)) == typeOf(op->getResult(0));
}
