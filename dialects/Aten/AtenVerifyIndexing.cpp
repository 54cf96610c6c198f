//===- AtenVerifyIndexing.cpp - Verifiers of rows by number, sorting ------===//

#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/RuleBuilder.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace spmd::aten;

using Shape = SmallVector<int64_t>;

/// C1 and C2: an integer index whose batch dimensions are those of `table`.
static LogicalResult verifyIndex(Operation *op, RankedTensorType table, RankedTensorType index, int64_t batchDims) {
  if (!index.getElementType().isInteger(64) && !index.getElementType().isInteger(32)) // C1
    return op->emitOpError() << "has index " << index << ", expected i64 or i32";
  if (batchDims < 0 || batchDims >= table.getRank() || batchDims > index.getRank()) // C2
    return op->emitOpError() << "has " << batchDims << " batch dimensions for " << table << " and index " << index;
  if (table.getShape().take_front(batchDims) != index.getShape().take_front(batchDims))
    return op->emitOpError() << "has index " << index << " for " << table << ", which differ in the first "
                             << batchDims << " dimensions";
  return success();
}

/// Batch and index dimensions, then those of a row.
static Shape rowsShape(RankedTensorType table, RankedTensorType index, int64_t batchDims) {
  Shape shape(index.getShape());
  llvm::append_range(shape, table.getShape().drop_front(batchDims + 1));
  return shape;
}

LogicalResult spmd::aten::verifyGatherRows(Operation *op) {
  auto gather = cast<GatherRowsOp>(op);
  RankedTensorType self = gather.getSelf().getType(), index = gather.getIndex().getType();
  int64_t batchDims = gather.getBatchDims();
  if (failed(verifyIndex(op, self, index, batchDims)) ||
      failed(expectShape(op, gather.getResult(), rowsShape(self, index, batchDims)))) // C3
    return failure();
  if (gather.getResult().getType().getElementType() != self.getElementType())
    return op->emitOpError() << "has result " << gather.getResult().getType() << " of " << self;
  return success();
}

LogicalResult spmd::aten::verifyScatterRows(Operation *op) {
  auto scatter = cast<ScatterRowsOp>(op);
  RankedTensorType result = scatter.getResult().getType(), index = scatter.getIndex().getType();
  int64_t batchDims = scatter.getBatchDims();
  if (failed(verifyIndex(op, result, index, batchDims)) ||
      failed(expectShape(op, scatter.getSrc(), rowsShape(result, index, batchDims)))) // C3
    return failure();
  if (result.getDimSize(batchDims) != static_cast<int64_t>(scatter.getRows()))
    return op->emitOpError() << "has result " << result << ", expected " << scatter.getRows() << " rows";
  if (scatter.getSrc().getType().getElementType() != result.getElementType())
    return op->emitOpError() << "has src " << scatter.getSrc().getType() << " for " << result;
  if (Value self = scatter.getSelf(); self && typeOf(self).getElementType() != result.getElementType())
    return op->emitOpError() << "has self " << self.getType() << " for " << result;
  if (Value self = scatter.getSelf(); self && failed(expectShape(op, self, result.getShape())))
    return failure();
  StringRef reduce = scatter.getReduce(); // C4
  if (!llvm::is_contained({"set", "sum", "prod", "amax", "amin"}, reduce))
    return op->emitOpError() << "has reduce \"" << reduce << "\", expected set, sum, prod, amax or amin";
  if (!scatter.getSelf() && reduce != "set" && reduce != "sum")
    return op->emitOpError() << "reduces with \"" << reduce << "\" onto nothing";
  return success();
}

LogicalResult spmd::aten::verifyCheckIndex(Operation *op) {
  auto check = cast<CheckIndexOp>(op);
  RankedTensorType self = check.getSelf().getType();
  if (!self.getElementType().isSignlessInteger()) // C1
    return op->emitOpError() << "checks " << self << ", expected integers";
  if (failed(expectShape(op, check.getResult(), self.getShape())) ||
      check.getResult().getType().getElementType() != self.getElementType()) // C2
    return op->emitOpError() << "makes " << check.getResult().getType() << " of " << self;
  if (static_cast<int64_t>(check.getLow()) > static_cast<int64_t>(check.getHigh())) // C3
    return op->emitOpError() << "has the empty range [" << check.getLow() << ", " << check.getHigh() << ")";
  return success();
}

LogicalResult spmd::aten::verifySort(Operation *op) {
  auto sort = cast<SortStableOp>(op);
  RankedTensorType self = sort.getSelf().getType();
  int64_t dim = sort.getDim();
  if (dim < 0 || dim >= self.getRank()) // C1
    return op->emitOpError() << "has dimension " << dim << " of a tensor of rank " << self.getRank();
  for (Value result : op->getResults()) // C2
    if (failed(expectShape(op, result, self.getShape())))
      return failure();
  if (sort.getValues().getType().getElementType() != self.getElementType() ||
      !sort.getIndices().getType().getElementType().isInteger(64))
    return op->emitOpError() << "has values " << sort.getValues().getType() << " and indices "
                             << sort.getIndices().getType() << " of " << self;
  return success();
}
