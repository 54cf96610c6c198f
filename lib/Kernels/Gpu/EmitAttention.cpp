//===- EmitAttention.cpp - kernel.attention for GPUs ----------------------===//
//
// A block owns a tile of queries of one batch and head and goes over the keys they may see, a tile at a time: scores,
// their running maximum m and sum l, and the output so far, rescaled when m rises (an online softmax). Nothing of size
// queries x keys is ever in memory. With a causal window the blocks with most keys come first.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "AttentionTiles.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <tuple>

using namespace mlir;

namespace spmd::kernel {
namespace {

class ForwardEmitter : AttentionTiles {
public:
  ForwardEmitter(GpuBuilder &b, AttentionOp op, const Device &device)
      : AttentionTiles(b, op, device, /*firstMaskOperand=*/3), op(op), headDim(sizes.getHeadDim()),
        vDim(sizes.getVDim()) {}
  LogicalResult emit();

private:
  int64_t getFloats(Tile tile, bool sharesTile) const;
  void emitSoftmax(Matrix &scores, Matrix &maxima, Matrix &totals, Matrix &out, Tile tile);

  AttentionOp op;
  int64_t headDim, vDim;
};

} // namespace

/// Words of shared memory; keys and values take turns in one tile if `sharesTile`.
int64_t ForwardEmitter::getFloats(Tile tile, bool sharesTile) const {
  int64_t keys = getStride(headDim), values = getStride(vDim);
  return tile.rows * (keys + getStride(tile.columns)) +
         tile.columns * (sharesTile ? std::max(keys, values) : keys + values);
}

/// Scores to probabilities, not normalized; what the rows carry is brought to their new maxima. Totals are each
/// thread's.
void ForwardEmitter::emitSoftmax(Matrix &scores, Matrix &maxima, Matrix &totals, Matrix &out, Tile tile) {
  int64_t n = tile.columns / kSide, chunks = getChunks(vDim);
  for (int64_t i = 0; i < tile.rows / kSide; ++i) {
    MutableArrayRef<Value> row = MutableArrayRef(scores).slice(i * n, n);
    Value top = row.front();
    for (Value score : row.drop_front())
      top = b.combine(ReduceKind::Max, top, score);
    top = b.combine(ReduceKind::Max, maxima[i], b.reduceWarp(ReduceKind::Max, top, kSide));
    // A row that has seen nothing yet has weight 0, not NaN.
    Value shift = arith::SelectOp::create(b, isMinusInfinity(top), number(0), top);
    Value weight = exp(sub(maxima[i], shift)), total = mul(totals[i], weight);
    for (Value &score : row) {
      score = exp(sub(score, shift));
      total = add(total, score);
    }
    maxima[i] = top;
    totals[i] = total;
    for (Value &sum : MutableArrayRef(out).slice(i * chunks, chunks))
      sum = mul(sum, b.broadcast(weight, getChunk(vDim)));
  }
}

LogicalResult ForwardEmitter::emit() {
  int64_t heads = sizes.getHeads(), qLen = sizes.getQLen(), allHeads = sizes.getBatch() * heads;
  auto tile = chooseTile(op, qLen, sizes.getKvLen(), allHeads, vDim, [&](Tile t) { return getFloats(t, true); });
  if (failed(tile))
    return failure();
  bool sharesTile = !fitTwice(getFloats(*tile, false));
  Value arena = b.shared(f32, getFloats(*tile, sharesTile));
  int64_t offset = 0, m = tile->rows / kSide, chunks = getChunks(vDim);
  SharedTile queries = placeTile(arena, offset, tile->rows, headDim);
  SharedTile weights = placeTile(arena, offset, tile->rows, tile->columns);
  int64_t keysAt = offset;
  SharedTile keys = placeTile(arena, offset, tile->columns, headDim);
  SharedTile values = placeTile(arena, sharesTile ? keysAt : offset, tile->columns, vDim);

  int64_t tiles = llvm::divideCeil(qLen, tile->rows);
  Value batchHead, turn;
  std::tie(batchHead, turn) = b.divide(b.getBlock(), tiles, allHeads * tiles);
  Value batch, head;
  std::tie(batch, head) = b.divide(batchHead, heads, allHeads);
  Value kvHead = b.divide(head, heads / sizes.getKvHeads(), heads).first;
  Value firstQuery = b.mul(b.sub(b.i64(tiles - 1), turn), tile->rows);
  HeadRows q = getRows(b.getPointer(0), op.getQ().getType(), op.getQView(), batch, head, qLen, headDim);
  HeadRows k = getRows(b.getPointer(1), op.getK().getType(), op.getKView(), batch, kvHead, sizes.getKvLen(), headDim);
  HeadRows v = getRows(b.getPointer(2), op.getV().getType(), op.getVView(), batch, kvHead, sizes.getKvLen(), vDim);

  fillTile(queries, q, firstQuery, tile->rows);
  auto [firstKey, endKey] = getKeyBounds(firstQuery, tile->rows, tile->columns);
  // What rows carry: maxima, totals, output.
  Matrix carried(m, infinity());
  carried.append(Matrix(m, number(0)));
  carried.append(getZeros(tile->rows, vDim));
  carried = b.loop(firstKey, endKey, tile->columns, carried, [&](Value key, ValueRange state) {
    Matrix maxima(state.take_front(m)), totals(state.slice(m, m)), out(state.drop_front(2 * m));
    // The tile before may still be read.
    if (sizes.getKvLen() > tile->columns)
      b.barrier();
    fillTile(keys, k, key, tile->columns);
    if (!sharesTile)
      fillTile(values, v, key, tile->columns);
    b.barrier();
    Matrix scores = dot(queries, keys, *tile, headDim);
    finishScores(scores, m, scale, batch, head, firstQuery, key, *tile, /*queriesAreRows=*/true);
    emitSoftmax(scores, maxima, totals, out, *tile);
    if (sharesTile) {
      b.barrier();
      fillTile(values, v, key, tile->columns);
    }
    storeMatrix(weights, scores, *tile);
    b.barrier();
    out = accumulate(out, weights, values, *tile, vDim);
    Matrix next(maxima);
    next.append(totals);
    next.append(out);
    return next;
  });

  Matrix out(ArrayRef(carried).drop_front(2 * m));
  for (int64_t i = 0; i < m; ++i) {
    Value top = carried[i], total = b.reduceWarp(ReduceKind::Add, carried[m + i], kSide);
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, number(0));
    Value inverse = arith::SelectOp::create(b, isEmpty, number(0), arith::DivFOp::create(b, number(1), total));
    for (Value &sum : MutableArrayRef(out).slice(i * chunks, chunks))
      sum = mul(sum, b.broadcast(inverse, getChunk(vDim)));
    Value lse = arith::SelectOp::create(b, isEmpty, infinity(), add(top, math::LogOp::create(b, total)));
    Value row = getRow(firstQuery, i);
    Value isFirst = b.isEqual(x, b.i64(0));
    b.when(arith::AndIOp::create(b, isFirst, b.isLess(row, b.i64(qLen))),
           [&] { b.store(lse, b.getResultPointer(1), b.add(b.mul(batchHead, qLen), row)); });
  }
  HeadRows to = getRows(b.getResultPointer(0), op.getOut().getType(), op.getOutView(), batch, head, qLen, vDim);
  storeRows(to, firstQuery, out, tile->rows);
  b.setResidentBlocks(getResidentBlocks(getSumRegisters(tile->rows, vDim)));
  b.finish(kThreads, allHeads * tiles);
  return success();
}

static LogicalResult emitGpuAttention(GpuBuilder &b, AttentionOp op, const Device &device) {
  if (emitAttentionWarps(b, op, device))
    return success();
  return ForwardEmitter(b, op, device).emit();
}

void addGpuAttentionEmitters(GpuEmitters &emitters) { emitters.add(emitGpuAttention); }

} // namespace spmd::kernel
