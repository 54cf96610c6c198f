//===- EmitCopy.cpp - loops of kernel.copy --------------------------------===//
//
// A piece is a cluster of one operand (zeros: of none) that yields it; the trips of the pieces follow each other.
//
//===----------------------------------------------------------------------===//

#include "../SimplifyCluster.h"
#include "Emitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// The piece as a detached cluster whose first dim, if any, is parallel.
static OwningOpRef<ClusterOp> getPieceCluster(CopyOp op, PieceAttr piece) {
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

LogicalResult emitCopy(KernelBuilder &b, CopyOp op) {
  int64_t first = 0;
  for (auto piece : op.getPieces().getAsRange<PieceAttr>()) {
    OwningOpRef<ClusterOp> cluster = getPieceCluster(op, piece);
    int64_t trips = cluster->getParallelTrips();
    // The part of [begin, end) that lies in this piece, perhaps none.
    Value low = b.max(b.sub(b.getBegin(), b.i64(first)), b.i64(0));
    Value high = b.max(b.min(b.sub(b.getEnd(), b.i64(first)), b.i64(trips)), low);
    ClusterArguments arguments = {{}, {b.getResultPointer(0)}, low, high};
    if (piece.getSource() >= 0)
      arguments.operands.push_back(b.getPointer(piece.getSource()));
    if (failed(emitClusterLoops(b, *simplifyCluster(*cluster), arguments)))
      return failure();
    first += trips;
  }
  return success();
}

} // namespace spmd::kernel
