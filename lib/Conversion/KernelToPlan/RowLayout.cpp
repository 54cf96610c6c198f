//===- RowLayout.cpp - How a collective cuts rows into chunks -------------===//

#include "RowLayout.h"
#include "Communicators.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;
using namespace spmd;

RowLayout::RowLayout(RowCollectiveOpInterface op) {
  auto collective = cast<CollectiveOpInterface>(op.getOperation());
  CollectiveKind kind = collective.getCollectiveKind();
  auto sent = cast<RankedTensorType>(op->getOperand(0).getType());
  auto received = cast<RankedTensorType>(collective.getReceivedTypes().front());
  RankedTensorType whole = receivesWhole(kind) ? received : sent, part = sendsWhole(kind) ? received : sent;
  auto dim = static_cast<int64_t>(op.getDim()), pre = static_cast<int64_t>(op.getPre());
  ranks = getGroupSize(collective);
  total = whole.getDimSize(dim) / pre;
  chunk = sendsWhole(kind) && receivesWhole(kind) ? total / ranks : part.getDimSize(dim) / pre;
  for (int64_t size : whole.getShape().take_front(dim))
    outer *= size;
  for (int64_t size : whole.getShape().drop_front(dim + 1))
    inner *= size;
  outer *= pre;
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = pre * chunk;
  shape[0] *= ranks;
  chunks = RankedTensorType::get(shape, whole.getElementType());
}

AffineMap RowLayout::getMap(MLIRContext *context, int64_t rows, int64_t first, int64_t offset) const {
  AffineExpr o = getAffineDimExpr(0, context), r = getAffineDimExpr(1, context), i = getAffineDimExpr(2, context);
  return AffineMap::get(3, 0, (o * rows + r + first) * inner + i + offset);
}
