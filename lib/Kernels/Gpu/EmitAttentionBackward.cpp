//===- EmitAttentionBackward.cpp - kernel.attention_backward for GPUs -----===//
//
// [Note: blocks of attention's backward]
// With P = exp(scale q k^T + mask - lse), dP = dout v^T, delta = rowsum(dout out), dM = P (dP - delta) and
// dS = scale dM, the gradients are dv = P^T dout, dk = dS^T q, dq = dS k, and dM is the mask's. One kernel makes them
// all: the first blocks of its grid own tiles of keys and stream queries past them (dk and dv, over the query heads of
// the group), the next own tiles of queries and stream keys (dq), and where the mask has a gradient the last own tiles
// of it and go over the batches and heads it is summed over. Each makes P and dP again, which is cheaper than to add up
// what others made, needs no atomics, and gives the same bits on every run.
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardBlocks.h"
#include "AttentionKernels.h"
#include "AttentionTiles.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <tuple>

using namespace mlir;

namespace spmd::kernel {
namespace {

class BackwardEmitter : BackwardBlocks<AttentionTiles> {
public:
  BackwardEmitter(GpuBuilder &b, AttentionBackwardOp op, const Device &device) : BackwardBlocks(b, op, device) {}
  LogicalResult emit();

private:
  /// Tiles of the block's rows and of those that are streamed past it: q and dout, or k and v.
  struct Tiles {
    SharedTile keyed, valued;
  };
  int64_t getFloats(Tile tile, int64_t weights, int64_t deltas) const;
  /// Two matrices of weights, if there is room for both.
  int64_t countWeights(Tile tile) const { return fitTwice(getFloats(tile, 2, tile.columns)) ? 2 : 1; }

  void fillDelta(Value delta, Value batch, Value head, Value firstQuery, int64_t queries);
  struct Gradients {
    Matrix probabilities, ofMasked;
  };
  Gradients emitScores(const Tiles &rows, const Tiles &columns, Value delta, Value batch, Value head, Value firstQuery,
                       Value firstKey, Tile tile, bool queriesAreRows);
  Matrix scaled(const Matrix &matrix);

  Tiles placeTiles(int64_t &offset, int64_t rows);
  void emitKeyBlock(Value number, const Plan &plan);
  void emitQueryBlock(Value number, const Plan &plan);
  void emitMaskBlock(Value number, const Plan &plan);

  Value arena;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int64_t BackwardEmitter::getFloats(Tile tile, int64_t weights, int64_t deltas) const {
  return (tile.rows + tile.columns) * (getStride(headDim) + getStride(vDim)) +
         weights * tile.rows * getStride(tile.columns) + deltas;
}

BackwardEmitter::Tiles BackwardEmitter::placeTiles(int64_t &offset, int64_t rows) {
  Tiles tiles;
  tiles.keyed = placeTile(arena, offset, rows, headDim);
  tiles.valued = placeTile(arena, offset, rows, vDim);
  return tiles;
}

/// delta of the queries from `firstQuery` on, some neighbouring threads to a row.
void BackwardEmitter::fillDelta(Value delta, Value batch, Value head, Value firstQuery, int64_t queries) {
  int64_t sharers = kThreads / queries;
  Value own = b.floorDiv(b.getThread(), sharers), part = b.mod(b.getThread(), sharers);
  Value row = b.min(b.add(firstQuery, own), b.i64(sizes.getQLen() - 1));
  HeadRows dout = getDout(batch, head);
  HeadRows out = getOut(batch, head);
  int64_t width = dout.isAligned && out.isAligned ? kWidth : 1;
  Type type = getWideType(f32, width);
  Value sum =
      b.loop(b.mul(part, width), b.i64(vDim), sharers * width, b.number(type, 0), [&](Value c, ValueRange sums) {
        Value product = mul(loadColumns(dout, row, c, width), loadColumns(out, row, c, width));
        return SmallVector<Value>{add(sums[0], product)};
      })[0];
  if (width > 1)
    sum = b.reduceLanes(ReduceKind::Add, sum);
  sum = b.reduceWarp(ReduceKind::Add, sum, sharers);
  b.when(b.isEqual(part, b.i64(0)), [&] { b.store(sum, delta, own); });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// P and dM of a pair of tiles.
BackwardEmitter::Gradients BackwardEmitter::emitScores(const Tiles &rows, const Tiles &columns, Value delta,
                                                       Value batch, Value head, Value firstQuery, Value firstKey,
                                                       Tile tile, bool queriesAreRows) {
  int64_t m = tile.rows / kSide, n = tile.columns / kSide, queries = queriesAreRows ? m : n;
  Matrix p = dot(rows.keyed, columns.keyed, tile, headDim), d = dot(rows.valued, columns.valued, tile, vDim);
  finishScores(p, m, scale, batch, head, firstQuery, firstKey, tile, queriesAreRows);
  Value lsePointer = b.getPointer(firstStatistic + 1);
  Value firstLse = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
  for (int64_t q = 0; q < queries; ++q) {
    Value own = queriesAreRows ? getRow(b.i64(0), q) : getColumn(b.i64(0), q);
    Value query = b.min(b.add(firstQuery, own), b.i64(sizes.getQLen() - 1));
    Value lse = b.load(lsePointer, f32, b.add(firstLse, query)), rowDelta = b.load(delta, f32, own);
    // A query that sees nothing: its scores are -inf too.
    lse = arith::SelectOp::create(b, isMinusInfinity(lse), number(0), lse);
    for (int64_t k = 0; k < m * n / queries; ++k) {
      int64_t e = queriesAreRows ? q * n + k : k * n + q;
      p[e] = exp(sub(p[e], lse));
      d[e] = mul(p[e], sub(d[e], rowDelta));
    }
  }
  return {p, d};
}

AttentionTiles::Matrix BackwardEmitter::scaled(const Matrix &matrix) {
  return llvm::map_to_vector(matrix, [&](Value v) { return mul(v, number(scale)); });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// dk and dv of a tile of keys.
void BackwardEmitter::emitKeyBlock(Value number, const Plan &plan) {
  Tile tile = plan.tile;
  int64_t kvHeads = sizes.getKvHeads(), offset = 0, chunksOfV = getZeros(tile.rows, vDim).size();
  Tiles own = placeTiles(offset, tile.rows), streamed = placeTiles(offset, tile.columns);
  SharedTile weights = placeTile(arena, offset, tile.rows, tile.columns), second = weights;
  bool hasTwo = countWeights(tile) == 2;
  if (hasTwo)
    second = placeTile(arena, offset, tile.rows, tile.columns);
  Value delta = b.address(arena, f32, b.i64(offset));

  Value batchHead, which;
  std::tie(batchHead, which) = b.divide(number, plan.tiles, plan.blocks);
  Value batch, kvHead;
  std::tie(batch, kvHead) = b.divide(batchHead, kvHeads, sizes.getBatch() * kvHeads);
  // What keys see most queries comes first.
  Value firstKey = b.mul(which, tile.rows);
  fillTile(own.keyed, getK(batch, kvHead), firstKey, tile.rows);
  fillTile(own.valued, getV(batch, kvHead), firstKey, tile.rows);
  Value firstQuery, endQuery;
  std::tie(firstQuery, endQuery) = getQueryBounds(firstKey, tile.rows, tile.columns);
  Matrix sums = getZeros(tile.rows, vDim);
  sums.append(getZeros(tile.rows, headDim));
  sums = b.loop(b.i64(0), b.i64(group), 1, sums, [&](Value member, ValueRange carried) {
    Value head = b.add(b.mul(kvHead, group), member);
    return b.loop(firstQuery, endQuery, tile.columns, carried, [&](Value query, ValueRange carried) {
      Matrix dv(carried.take_front(chunksOfV)), dk(carried.drop_front(chunksOfV));
      // The tile before may still be read.
      if (group > 1 || sizes.getQLen() > tile.columns)
        b.barrier();
      fillTile(streamed.keyed, getQ(batch, head), query, tile.columns);
      fillTile(streamed.valued, getDout(batch, head), query, tile.columns);
      fillDelta(delta, batch, head, query, tile.columns);
      b.barrier();
      Gradients g = emitScores(own, streamed, delta, batch, head, query, firstKey, tile, /*queriesAreRows=*/false);
      Matrix dS = scaled(g.ofMasked);
      storeMatrix(weights, g.probabilities, tile);
      if (hasTwo)
        storeMatrix(second, dS, tile);
      b.barrier();
      dv = accumulate(dv, weights, streamed.valued, tile, vDim);
      if (!hasTwo) {
        b.barrier();
        storeMatrix(second, dS, tile);
        b.barrier();
      }
      dv.append(accumulate(dk, second, streamed.keyed, tile, headDim));
      return dv;
    });
  });
  HeadRows dk = getGrad(numGrads / 2, op.getDkView(), batch, kvHead, sizes.getKvLen(), headDim);
  HeadRows dv = getGrad(numGrads - 1, op.getDvView(), batch, kvHead, sizes.getKvLen(), vDim);
  storeRows(dv, firstKey, Matrix(ArrayRef(sums).take_front(chunksOfV)), tile.rows);
  storeRows(dk, firstKey, Matrix(ArrayRef(sums).drop_front(chunksOfV)), tile.rows);
}

/// dq of a tile of queries.
void BackwardEmitter::emitQueryBlock(Value number, const Plan &plan) {
  Tile tile = plan.tile;
  int64_t heads = sizes.getHeads(), offset = 0;
  Tiles own = placeTiles(offset, tile.rows), streamed = placeTiles(offset, tile.columns);
  SharedTile weights = placeTile(arena, offset, tile.rows, tile.columns);
  Value delta = b.address(arena, f32, b.i64(offset));

  auto [batchHead, turn] = b.divide(number, plan.tiles, plan.blocks);
  Value batch, head;
  std::tie(batch, head) = b.divide(batchHead, heads, sizes.getBatch() * heads);
  Value kvHead = getKvHead(head);
  Value firstQuery = b.mul(b.sub(b.i64(plan.tiles - 1), turn), tile.rows);
  fillTile(own.keyed, getQ(batch, head), firstQuery, tile.rows);
  fillTile(own.valued, getDout(batch, head), firstQuery, tile.rows);
  fillDelta(delta, batch, head, firstQuery, tile.rows);
  auto [firstKey, endKey] = getKeyBounds(firstQuery, tile.rows, tile.columns);
  Matrix dq = b.loop(firstKey, endKey, tile.columns, getZeros(tile.rows, headDim), [&](Value key, ValueRange carried) {
    if (sizes.getKvLen() > tile.columns)
      b.barrier();
    fillTile(streamed.keyed, getK(batch, kvHead), key, tile.columns);
    fillTile(streamed.valued, getV(batch, kvHead), key, tile.columns);
    b.barrier();
    Gradients g = emitScores(own, streamed, delta, batch, head, firstQuery, key, tile, /*queriesAreRows=*/true);
    storeMatrix(weights, scaled(g.ofMasked), tile);
    b.barrier();
    return accumulate(Matrix(carried), weights, streamed.keyed, tile, headDim);
  });
  storeRows(getGrad(0, op.getDqView(), batch, head, sizes.getQLen(), headDim), firstQuery, dq, tile.rows);
}

/// The mask's gradient on a tile of queries and keys, summed over the batches and heads that share it.
void BackwardEmitter::emitMaskBlock(Value number, const Plan &plan) {
  Tile tile = plan.tile;
  int64_t offset = 0;
  auto shape = cast<RankedTensorType>(op.getMaskGrad().getType()).getShape();
  Tiles rows = placeTiles(offset, tile.rows), columns = placeTiles(offset, tile.columns);
  Value delta = b.address(arena, f32, b.i64(offset));
  int64_t sharers = sizes.getBatch() * sizes.getHeads() / (shape[0] * shape[1]);
  auto emit = [&](Value batch, Value head, Value firstQuery, Value firstKey) {
    Value kvHead = getKvHead(head);
    if (sharers > 1)
      b.barrier();
    fillTile(rows.keyed, getQ(batch, head), firstQuery, tile.rows);
    fillTile(rows.valued, getDout(batch, head), firstQuery, tile.rows);
    fillDelta(delta, batch, head, firstQuery, tile.rows);
    fillTile(columns.keyed, getK(batch, kvHead), firstKey, tile.columns);
    fillTile(columns.valued, getV(batch, kvHead), firstKey, tile.columns);
    b.barrier();
    return emitScores(rows, columns, delta, batch, head, firstQuery, firstKey, tile, /*queriesAreRows=*/true).ofMasked;
  };
  emitMaskGradient(number, plan, tile.rows / kSide, tile.columns / kSide, emit);
}

LogicalResult BackwardEmitter::emit() {
  int64_t qLen = sizes.getQLen(), kvLen = sizes.getKvLen(), batch = sizes.getBatch();
  int64_t heads = batch * sizes.getHeads(), kvHeads = batch * sizes.getKvHeads();
  auto ofKeys =
      chooseTile(op, kvLen, qLen, kvHeads, headDim + vDim, [&](Tile t) { return getFloats(t, 1, t.columns); });
  if (failed(ofKeys))
    return failure();
  auto ofQueries = chooseTile(op, qLen, kvLen, heads, headDim, [&](Tile t) { return getFloats(t, 1, t.rows); });
  if (failed(ofQueries))
    return failure();
  int64_t keyTiles = llvm::divideCeil(kvLen, ofKeys->rows), queryTiles = llvm::divideCeil(qLen, ofQueries->rows);
  Plan keys = {*ofKeys, keyTiles, kvHeads * keyTiles}, queries = {*ofQueries, queryTiles, heads * queryTiles};
  int64_t maskBlocks = countMaskBlocks(op, queryTiles, ofQueries->columns);
  arena = b.shared(f32, std::max(getFloats(*ofKeys, countWeights(*ofKeys), ofKeys->columns),
                                 getFloats(*ofQueries, 1, ofQueries->rows)));

  emitParts(
      keys.blocks, [&](Value block) { emitKeyBlock(block, keys); }, queries.blocks,
      [&](Value block) { emitQueryBlock(block, queries); }, maskBlocks,
      [&](Value block) { emitMaskBlock(block, {queries.tile, queries.tiles, maskBlocks}); });
  b.setResidentBlocks(getResidentBlocks(
      std::max(getSumRegisters(keys.tile.rows, headDim + vDim), getSumRegisters(queries.tile.rows, headDim))));
  b.finish(kThreads, keys.blocks + queries.blocks + maskBlocks);
  return success();
}

static LogicalResult emitGpuAttentionBackward(GpuBuilder &b, AttentionBackwardOp op, const Device &device) {
  if (emitAttentionWarps(b, op, device))
    return success();
  return BackwardEmitter(b, op, device).emit();
}

void addGpuAttentionBackwardEmitters(GpuEmitters &emitters) { emitters.add(emitGpuAttentionBackward); }

} // namespace spmd::kernel
