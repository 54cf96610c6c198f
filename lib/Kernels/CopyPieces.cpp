//===- CopyPieces.cpp - pieces of a kernel.copy as clusters ---------------===//

#include "CopyPieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

OwningOpRef<ClusterOp> getPieceCluster(CopyOp op, PieceAttr piece) {
  OpBuilder builder(op.getContext());
  bool isZero = piece.getSource() < 0;
  SmallVector<Value> sources;
  SmallVector<AffineMap> from;
  if (!isZero) {
    sources.push_back(op.getSources()[piece.getSource()]);
    from.push_back(piece.getFrom());
  }
  auto cluster = ClusterOp::create(builder, op.getLoc(), op.getResult().getType(), sources, piece.getDims(),
                                   piece.getDims().empty() ? 0 : 1, from, piece.getTo());
  Block *body = cluster.getBodyBlock();
  builder.setInsertionPointToEnd(body);
  Value value;
  if (isZero)
    value = arith::ConstantOp::create(builder, op.getLoc(),
                                      builder.getZeroAttr(getElementTypeOrSelf(op.getResult().getType())));
  else
    value = body->getArgument(0);
  YieldOp::create(builder, op.getLoc(), value);
  return cluster;
}

} // namespace spmd::kernel
