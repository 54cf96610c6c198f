//===- EmitCopy.cpp - kernel.copy for GPUs --------------------------------===//
//
// A piece is a cluster that yields its operand; the blocks of the pieces follow each other in one grid.
//
//===----------------------------------------------------------------------===//

#include "../CopyPieces.h"
#include "../SimplifyCluster.h"
#include "GpuEmitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace spmd::kernel {

static LogicalResult emitGpuCopy(GpuBuilder &b, CopyOp op, const Device &device) {
  b.addMovedBytes(op.getBytesMoved());
  struct Piece {
    scf::IfOp guard;
    LaunchShape shape;
  };
  SmallVector<Piece> pieces;
  Value never = b.constant(b.getBoolAttr(false));
  int64_t threads = 0, grid = 0;
  for (auto piece : op.getPieces().getAsRange<PieceAttr>()) {
    OwningOpRef<ClusterOp> cluster = getPieceCluster(op, piece);
    // Which blocks and threads it is for is known when it is there.
    auto guard = scf::IfOp::create(b, never, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPointToStart(guard.thenBlock());
    GpuClusterArguments arguments = {{}, {b.getResultPointer(0)}, b.sub(b.getBlock(), b.i64(grid))};
    if (piece.getSource() >= 0)
      arguments.operands.push_back(b.getPointer(piece.getSource()));
    auto shape = emitGpuClusterBlocks(b, *simplifyCluster(*cluster), arguments, device);
    if (failed(shape))
      return failure();
    pieces.push_back({guard, *shape});
    threads = std::max(threads, shape->block);
    grid += shape->grid;
  }
  int64_t first = 0;
  for (auto [guard, shape] : pieces) {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPoint(guard);
    Value isFrom = b.isLess(b.i64(first - 1), b.getBlock());
    Value isMine = arith::AndIOp::create(b, isFrom, b.isLess(b.getBlock(), b.i64(first + shape.grid)));
    // Pieces with barriers have the largest blocks, so none of their threads stays out.
    if (shape.block < threads)
      isMine = arith::AndIOp::create(b, isMine, b.isLess(b.getThread(), b.i64(shape.block)));
    guard.getConditionMutable().assign(isMine);
    first += shape.grid;
  }
  b.finish(threads, grid);
  return success();
}

void addGpuCopyEmitters(GpuEmitters &emitters) { emitters.add(emitGpuCopy); }

} // namespace spmd::kernel
