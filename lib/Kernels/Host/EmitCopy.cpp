//===- EmitCopy.cpp - loops of kernel.copy --------------------------------===//
//
// A piece is a cluster of one operand (zeros: of none) that yields it; the iterations of the pieces follow each other.
//
//===----------------------------------------------------------------------===//

#include "../CopyPieces.h"
#include "../SimplifyCluster.h"
#include "Emitters.h"

using namespace mlir;

namespace spmd::kernel {

static LogicalResult emitCopy(KernelBuilder &b, CopyOp op) {
  int64_t first = 0;
  for (auto piece : op.getPieces().getAsRange<PieceAttr>()) {
    OwningOpRef<ClusterOp> cluster = getPieceCluster(op, piece);
    int64_t iterations = cluster->getParallelIterations();
    // The part of [begin, end) that lies in this piece, perhaps none.
    Value low = b.max(b.sub(b.getBegin(), b.i64(first)), b.i64(0));
    Value high = b.max(b.min(b.sub(b.getEnd(), b.i64(first)), b.i64(iterations)), low);
    ClusterArguments arguments = {{}, {b.getResultPointer(0)}, low, high};
    if (piece.getSource() >= 0)
      arguments.operands.push_back(b.getPointer(piece.getSource()));
    if (failed(emitClusterLoops(b, *simplifyCluster(*cluster), arguments)))
      return failure();
    first += iterations;
  }
  return success();
}

void addCopyEmitters(HostEmitters &emitters) { emitters.add(emitCopy); }

} // namespace spmd::kernel
