//===- BlockOrder.h - the order of ops while they are moved -----*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_COLLECTIVES_BLOCKORDER_H
#define SPMD_LIB_TRANSFORMS_COLLECTIVES_BLOCKORDER_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd {

/// The order of a block's ops, as isBeforeInBlock() tells it. That numbers the whole block anew after each move, which
/// for every collective of a long step takes a time that grows with the square of its length; this order gives a number
/// to what was moved alone. Ops are put into the block, moved and erased with its knowledge only.
class BlockOrder {
public:
  explicit BlockOrder(mlir::Block &block) : block(block) { number(); }

  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return places.at(a) < places.at(b); }
  /// Of an op that was made where it is, or moved there.
  void place(mlir::Operation *op);
  void moveBefore(mlir::Operation *op, mlir::Operation *other);
  void moveAfter(mlir::Operation *op, mlir::Operation *other);
  void erase(mlir::Operation *op);

private:
  void number();

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, int64_t> places;
};

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_COLLECTIVES_BLOCKORDER_H
