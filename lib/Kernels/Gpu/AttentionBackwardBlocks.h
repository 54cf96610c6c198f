//===- AttentionBackwardBlocks.h - attention's backward by block -*- C++ -*-===//
//
// What the kernels of [Note: blocks of attention's backward] have in common, whatever their products run on: where
// operands and gradients lie, which block does what, and the blocks of the mask's gradient.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_ATTENTIONBACKWARDBLOCKS_H
#define SPMD_LIB_KERNELS_GPU_ATTENTIONBACKWARDBLOCKS_H

#include "AttentionScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <tuple>

namespace spmd::kernel {

/// `BaseT` has the tiles: AttentionTiles or AttentionWarps.
template <typename BaseT>
class BackwardBlocks : protected BaseT {
protected:
  using Value = mlir::Value;
  using typename BaseT::Matrix;
  using typename BaseT::Tile;

  /// Blocks that own a tile each, `tiles` of a head.
  struct Plan {
    Tile tile;
    int64_t tiles, blocks;
  };

  BackwardBlocks(GpuBuilder &b, AttentionBackwardOp op, const Device &device)
      : BaseT(b, op, device, /*firstMaskOperand=*/4), op(op), headDim(this->sizes.getHeadDim()),
        vDim(this->sizes.getVDim()), group(this->sizes.getHeads() / this->sizes.getKvHeads()),
        firstStatistic(4 + op.getMaskInputs().size()), numGrads(op.getGrads().size()) {}

  HeadRows getDout(Value batch, Value head) { return getOperand(0, op.getDoutView(), batch, head, qLen(), vDim); }
  HeadRows getQ(Value batch, Value head) { return getOperand(1, op.getQView(), batch, head, qLen(), headDim); }
  HeadRows getK(Value batch, Value kvHead) { return getOperand(2, op.getKView(), batch, kvHead, kvLen(), headDim); }
  HeadRows getV(Value batch, Value kvHead) { return getOperand(3, op.getVView(), batch, kvHead, kvLen(), vDim); }
  HeadRows getOut(Value batch, Value head) {
    return getOperand(firstStatistic, op.getOutView(), batch, head, qLen(), vDim);
  }
  HeadRows getGrad(unsigned i, ViewAttr view, Value batch, Value head, int64_t rows, int64_t columns) {
    return this->getRows(this->b.getResultPointer(i), op.getGrads()[i].getType(), view, batch, head, rows, columns);
  }
  Value getKvHead(Value head) { return this->b.divide(head, group, this->sizes.getHeads()).first; }

  /// Gives each block its part, by its number among those of its kind.
  using Part = llvm::function_ref<void(Value)>;
  void emitParts(int64_t ofKeys, Part emitKeys, int64_t ofQueries, Part emitQueries, int64_t ofMask, Part emitMask) {
    GpuBuilder &b = this->b;
    Value block = b.getBlock();
    Value query = b.sub(block, b.i64(ofKeys)), mask = b.sub(query, b.i64(ofQueries));
    auto isBetween = [&](Value number, int64_t count) {
      Value isNotBefore = mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::sge, number, b.i64(0));
      return mlir::arith::AndIOp::create(b, isNotBefore, b.isLess(number, b.i64(count)));
    };
    b.when(b.isLess(block, b.i64(ofKeys)), [&] { emitKeys(block); });
    b.when(isBetween(query, ofQueries), [&] { emitQueries(query); });
    if (ofMask)
      b.when(isBetween(mask, ofMask), [&] { emitMask(mask); });
  }

  /// Blocks of the mask's gradient: a tile of queries and keys each.
  static int64_t countMaskBlocks(AttentionBackwardOp op, int64_t queryTiles, int64_t columns) {
    if (!op.getMaskGrad())
      return 0;
    auto shape = mlir::cast<mlir::RankedTensorType>(op.getMaskGrad().getType()).getShape();
    return shape[0] * shape[1] * queryTiles * static_cast<int64_t>(llvm::divideCeil(op.getSizes().getKvLen(), columns));
  }
  /// The mask's gradient on a tile, of which a thread has `rows` x `columns`: `emitScores` of a batch and head, summed
  /// over those that share it.
  void
  emitMaskGradient(Value number, Plan plan, int64_t rows, int64_t columns,
                   llvm::function_ref<Matrix(Value batch, Value head, Value firstQuery, Value firstKey)> emitScores);

  AttentionBackwardOp op;
  int64_t headDim, vDim, group;
  unsigned firstStatistic, numGrads;

private:
  int64_t qLen() { return this->sizes.getQLen(); }
  int64_t kvLen() { return this->sizes.getKvLen(); }
  HeadRows getOperand(unsigned i, ViewAttr view, Value batch, Value head, int64_t rows, int64_t columns) {
    return this->getRows(this->b.getPointer(i), op->getOperand(i).getType(), view, batch, head, rows, columns);
  }
};

template <typename BaseT>
void BackwardBlocks<BaseT>::emitMaskGradient(
    Value number, Plan plan, int64_t rows, int64_t columns,
    llvm::function_ref<Matrix(Value batch, Value head, Value firstQuery, Value firstKey)> emitScores) {
  GpuBuilder &b = this->b;
  Tile tile = plan.tile;
  auto shape = mlir::cast<mlir::RankedTensorType>(op.getMaskGrad().getType()).getShape();
  int64_t keyTiles = llvm::divideCeil(kvLen(), tile.columns), perPlane = plan.tiles * keyTiles;
  auto [plane, place] = b.divide(number, perPlane, plan.blocks);
  auto [queryTile, keyTile] = b.divide(place, keyTiles, perPlane);
  Value ownBatch, ownHead;
  std::tie(ownBatch, ownHead) = b.divide(plane, shape[1], shape[0] * shape[1]);
  Value firstQuery = b.mul(queryTile, tile.rows), firstKey = b.mul(keyTile, tile.columns);
  auto [low, high] = this->getKeyBounds(firstQuery, tile.rows, tile.columns);
  Value isSeen = mlir::arith::AndIOp::create(b, b.isLess(b.sub(low, b.i64(1)), firstKey), b.isLess(firstKey, high));
  auto forShared = [&](Value own, int64_t of, int64_t size, mlir::ValueRange carried, CodeBuilder::LoopBody body) {
    Value begin = of == 1 ? b.i64(0) : own, end = of == 1 ? b.i64(size) : b.add(own, 1);
    return b.loop(begin, mlir::arith::SelectOp::create(b, isSeen, end, begin), 1, carried, body);
  };
  Matrix zeros(rows * columns, this->number(0));
  Matrix sums =
      forShared(ownBatch, shape[0], this->sizes.getBatch(), zeros, [&](Value batch, mlir::ValueRange carried) {
        return forShared(ownHead, shape[1], this->sizes.getHeads(), carried, [&](Value head, mlir::ValueRange carried) {
          Matrix next(carried);
          for (auto [sum, value] : llvm::zip_equal(next, emitScores(batch, head, firstQuery, firstKey)))
            sum = this->add(sum, value);
          return next;
        });
      });
  for (auto [e, sum] : llvm::enumerate(sums)) {
    Value query = this->getRow(firstQuery, e / columns), key = this->getColumn(firstKey, e % columns);
    Value isThere = mlir::arith::AndIOp::create(b, b.isLess(query, b.i64(qLen())), b.isLess(key, b.i64(kvLen())));
    Value at = b.add(b.mul(b.add(b.mul(plane, qLen()), query), kvLen()), key);
    b.when(isThere, [&, sum = sum] { b.store(sum, b.getResultPointer(numGrads), at); });
  }
}

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONBACKWARDBLOCKS_H
