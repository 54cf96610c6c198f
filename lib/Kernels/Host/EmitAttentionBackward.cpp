//===- EmitAttentionBackward.cpp - loops of attention, backward ----------===//

#include "AttentionEmitter.h"
#include "Emitters.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class BackwardEmitter : public AttentionEmitter {
public:
  BackwardEmitter(KernelBuilder &b, AttentionBackwardOp op) : AttentionEmitter(b, op), op(op) {
    if (op.getMaskGrad())
      maskShape = cast<RankedTensorType>(op.getMaskGrad().getType()).getShape();
  }
  LogicalResult emit();

private:
  void countMoved(int64_t keySpan, int64_t querySpan);
  void forHeads(llvm::function_ref<void(Value, Value)> body);
  void forEachQuery(int64_t group, int64_t span, llvm::function_ref<void(Value, Value, Value)> body);
  void beginQueryGradients(const Sums &sums, Value rows, Value keyStart, int64_t keySpan);
  Panel getMaskGradient(Value batch, Value head);
  void zeroMaskGradient(Value batch, Value kvHead);
  void addToMaskGradient(const Panel &maskGrad, Value query, Value firstKey, Value key, Value keys, Value gradient);

  ArrayRef<int64_t> maskShape;
  AttentionBackwardOp op;
};

} // namespace

/// Adds 16 gradients of scores from `key` of the block into the gradient of the mask.
void BackwardEmitter::addToMaskGradient(const Panel &maskGrad, Value query, Value firstKey, Value key, Value keys,
                                        Value gradient) {
  // Once, or not at all when the vector is outside of the block.
  b.loop(key, b.min(b.add(key, 1), keys), 1, [&](Value) {
    Value column = b.add(firstKey, key);
    Value sum = addf(loadColumns(maskGrad, query, column, sizes.getKvLen()), gradient);
    storeColumns(maskGrad, query, column, sum, sizes.getKvLen());
  });
}

/// One iteration is what shares no gradient with another: a batch and key/value head, or several where the gradient of
/// the mask is summed over them.
void BackwardEmitter::forHeads(llvm::function_ref<void(Value, Value)> body) {
  int64_t batches = sizes.getBatch(), kvHeads = sizes.getKvHeads();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value iteration) {
    bool sumsBatches = op.getMaskGrad() && maskShape[0] == 1, sumsHeads = op.getMaskGrad() && maskShape[1] == 1;
    Value batch = sumsHeads ? iteration : b.floorDiv(iteration, kvHeads),
          head = sumsHeads ? b.i64(0) : b.mod(iteration, kvHeads);
    if (op.getMaskGrad())
      zeroMaskGradient(sumsBatches ? b.i64(0) : batch, head);
    Value one = b.i64(1);
    Value firstBatch = sumsBatches ? b.i64(0) : batch, endBatch = sumsBatches ? b.i64(batches) : b.add(batch, one);
    b.loop(firstBatch, endBatch, 1, [&](Value batch) {
      b.loop(head, sumsHeads ? b.i64(kvHeads) : b.add(head, one), 1, [&](Value kvHead) { body(batch, kvHead); });
    });
  });
}

/// Runs `body(member, first, rows)` for the spans of queries of each query head of a group.
void BackwardEmitter::forEachQuery(int64_t group, int64_t span, llvm::function_ref<void(Value, Value, Value)> body) {
  b.loop(b.i64(0), b.i64(group), 1, [&](Value member) {
    forSpans(sizes.getQLen(), span, [&](Value first, Value rows) { body(member, first, rows); });
  });
}

/// Sums of dq: zero where the first block of keys does not set them, and those of the spans of keys before.
void BackwardEmitter::beginQueryGradients(const Sums &sums, Value rows, Value keyStart, int64_t keySpan) {
  if (keySpan >= sizes.getKvLen()) {
    if (startsFromZero())
      zeroSums(sums, rows);
    return;
  }
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, keyStart, b.i64(0));
  auto choice = scf::IfOp::create(b, isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  zeroSums(sums, rows);
  b.setInsertionPointToStart(choice.elseBlock());
  resumeSums(sums, rows);
}

/// The rows of the mask's gradient for one query head.
Panel BackwardEmitter::getMaskGradient(Value batch, Value head) {
  int64_t plane = sizes.getQLen() * sizes.getKvLen();
  Value base =
      b.add(b.mul(batch, maskShape[0] == 1 ? 0 : maskShape[1] * plane), b.mul(head, maskShape[1] == 1 ? 0 : plane));
  return {b.getResultPointer(op.getGrads().size()), base, sizes.getKvLen()};
}

void BackwardEmitter::zeroMaskGradient(Value batch, Value kvHead) {
  int64_t group = maskShape[1] == 1 ? 1 : sizes.getHeads() / sizes.getKvHeads();
  b.loop(b.i64(0), b.i64(group), 1, [&](Value member) {
    Panel rows = getMaskGradient(batch, b.add(b.mul(kvHead, group), member));
    b.loop(b.i64(0), b.i64(sizes.getQLen()), 1, [&](Value row) { zeroRow(rows, row, sizes.getKvLen()); });
  });
}

/// Where the cache does not hold spans of queries and keys, keys and values are read again, and their gradients' sums
/// read and written, for each span of queries of each head of the group. Where it does not hold a span of queries and a
/// block of keys, rows of queries are read again, and their gradients' sums read and written, for each block of keys;
/// else for each span of keys.
void BackwardEmitter::countMoved(int64_t keySpan, int64_t querySpan) {
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim(), size = getElementSize();
  int64_t qLen = sizes.getQLen(), kvLen = sizes.getKvLen(), group = sizes.getHeads() / sizes.getKvHeads();
  int64_t kvHeads = sizes.getBatch() * sizes.getKvHeads(), heads = sizes.getBatch() * sizes.getHeads();
  int64_t keyRow = (headDim + vDim) * (size + kSumSize), queryRow = (headDim + 2 * vDim) * size + headDim * kSumSize;
  int64_t queries = std::min(querySpan, qLen) * queryRow, keys = std::min(keySpan, kvLen) * keyRow;
  if (queries + keys <= b.getCacheBytes())
    return;
  int64_t readers = group * llvm::divideCeil(qLen, querySpan);
  b.addMovedBytes((readers - 1) * kvHeads * kvLen * (headDim + vDim) * (size + 2 * kSumSize));
  int64_t visits = qLen * llvm::divideCeil(kvLen, keySpan);
  if (queries + keyBlock * (keyRow + (headDim + vDim) * kSumSize) > b.getCacheBytes())
    visits = countQueriesOfBlocks();
  b.addMovedBytes(heads * std::max<int64_t>(visits - qLen, 0) * ((headDim + 2 * vDim) * size + 2 * headDim * kSumSize));
}

LogicalResult BackwardEmitter::emit() {
  int64_t group = sizes.getHeads() / sizes.getKvHeads();
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim();
  Value doutPointer = b.getPointer(0), qPointer = b.getPointer(1), kPointer = b.getPointer(2);
  unsigned next = 4 + op.getMaskInputs().size();
  Value vPointer = b.getPointer(3), outPointer = b.getPointer(next), lsePointer = b.getPointer(next + 1);
  unsigned results = op.getGrads().size();
  Value dqPointer = b.getResultPointer(0), dkPointer = b.getResultPointer(results / 2);
  Value dvPointer = b.getResultPointer(results - 1);

  Panel keysT = scratch(headDim, keyBlock), valuesT = scratch(vDim, keyBlock);
  Panel scores = scoresScratch(), dScores = scoresScratch();
  Panel rowLanes = scratch(kQueryBlock, kLanes), deltas = scratch(1, kQueryBlock);
  Panel keyBuffer = paddedScratch(keyBlock, headDim), queryBuffer = paddedScratch(kQueryBlock, headDim);
  Panel doutBuffer = paddedScratch(kQueryBlock, vDim), outBuffer = paddedScratch(kQueryBlock, vDim);
  int64_t keySpan = getSpan(sizes.getKvLen(), padTo(headDim, kLanes) + padTo(vDim, kLanes), keyBlock);
  int64_t querySpan = getSpan(sizes.getQLen(), padTo(headDim, kLanes), kQueryBlock);
  countMoved(keySpan, querySpan);
  Panel dqMemory = sumsScratch(querySpan, headDim);
  Panel dkMemory = sumsScratch(keySpan, headDim), dvMemory = sumsScratch(keySpan, vDim);

  forHeads([&](Value batch, Value kvHead) {
    Panel k = panel(kPointer, op.getKView(), batch, kvHead), v = panel(vPointer, op.getVView(), batch, kvHead);
    Panel dk = panel(dkPointer, op.getDkView(), batch, kvHead), dv = panel(dvPointer, op.getDvView(), batch, kvHead);
    forSpans(sizes.getKvLen(), keySpan, [&](Value keyStart, Value keyRowCount) {
      Sums dkSums = getSums(dkMemory, dk, keyStart, headDim), dvSums = getSums(dvMemory, dv, keyStart, vDim);
      if (!everyKeyIsSeen()) {
        zeroSums(dkSums, keyRowCount);
        zeroSums(dvSums, keyRowCount);
      }
      forEachQuery(group, querySpan, [&](Value member, Value queryStart, Value queryRowCount) {
        Value head = b.add(b.mul(kvHead, group), member), queryEnd = b.add(queryStart, queryRowCount);
        Panel q = panel(qPointer, op.getQView(), batch, head), dq = panel(dqPointer, op.getDqView(), batch, head);
        Panel dout = panel(doutPointer, op.getDoutView(), batch, head);
        Panel out = panel(outPointer, op.getOutView(), batch, head);
        Panel maskGrad = op.getMaskGrad() ? getMaskGradient(batch, head) : Panel();
        Place next = locate(b.add(b.add(b.mul(batch, sizes.getHeads()), head), b.i64(1)));
        NextHead ahead = fitting({{{panel(qPointer, op.getQView(), next.batch, next.head), headDim},
                                   {panel(doutPointer, op.getDoutView(), next.batch, next.head), vDim},
                                   {panel(outPointer, op.getOutView(), next.batch, next.head), vDim},
                                   {panel(dqPointer, op.getDqView(), next.batch, next.head), headDim}},
                                  {{panel(kPointer, op.getKView(), next.batch, next.kvHead), headDim},
                                   {panel(vPointer, op.getVView(), next.batch, next.kvHead), vDim},
                                   {panel(dkPointer, op.getDkView(), next.batch, next.kvHead), headDim},
                                   {panel(dvPointer, op.getDvView(), next.batch, next.kvHead), vDim}}});
        Value lseBase = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
        Sums dqSums = getSums(dqMemory, dq, queryStart, headDim);
        beginQueryGradients(dqSums, queryRowCount, keyStart, keySpan);
        forKeyBlocks(keyStart, b.add(keyStart, keyRowCount), [&](Value firstKey, Value keys) {
          Panel blockK = k.from(b, firstKey);
          packTransposed(b, blockK, keysT, keys, roundUp(keys, kKeyTile), headDim);
          packTransposed(b, v.from(b, firstKey), valuesT, keys, roundUp(keys, kKeyTile), vDim);
          Panel keyRows = readable(blockK, keyBuffer, keys, headDim);
          Value spanKey = b.sub(firstKey, keyStart);
          Panel dkRows = dkSums.rows.from(b, spanKey), dvRows = dvSums.rows.from(b, spanKey);
          Value isFirst = isFirstBlock(firstKey);
          forQueryBlocks(queryStart, queryEnd, firstKey, keys, [&](Value firstQuery, Value rows) {
            Panel doutRows = readable(dout.from(b, firstQuery), doutBuffer, rows, vDim);
            Panel outRows = readable(out.from(b, firstQuery), outBuffer, rows, vDim);
            Panel queryRows = readable(q.from(b, firstQuery), queryBuffer, rows, headDim);
            Panel dqRows = dqSums.rows.from(b, b.sub(firstQuery, queryStart));
            Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
            Value padded = roundUp(visible, kKeyTile);
            withSeen(firstQuery, rows, firstKey, keys, [&](const Seen &seen) {
              emitScores(queryRows, keysT, scores, rows, padded, headDim, seen);
              emitScores(doutRows, valuesT, dScores, rows, padded, vDim, seen);
              b.loop(b.i64(0), rows, 1, [&](Value row) {
                Value products = b.loop(b.i64(0), b.i64(padTo(vDim, kLanes)), kLanes, b.number(wide, 0),
                                        [&](Value c, ValueRange carried) {
                                          Value product = mulf(vector(doutRows, row, c), vector(outRows, row, c));
                                          return SmallVector<Value>{addf(carried[0], product)};
                                        })[0];
                b.store(products, rowLanes.pointer, rowLanes.index(b, row, b.i64(0)));
              });
              reduceRows(ReduceKind::Add, rowLanes, rows,
                         [&](Value row, Value delta) { b.store(delta, deltas.pointer, row); });
              b.loop(b.i64(0), rows, 1, [&](Value r) {
                Value query = b.add(firstQuery, r);
                Value rowDelta = b.broadcast(b.load(deltas.pointer, f32, r), kLanes);
                Value rowLse = b.load(lsePointer, f32, b.add(lseBase, query));
                rowLse = arith::SelectOp::create(b, isMinusInfinity(rowLse), number(0), rowLse);
                Value shift = mulf(rowLse, number(-M_LOG2E));
                Row row = {getHidden(firstKey, query), getVisible(firstKey, keys, query), getRowEnd(seen, r, padded)};
                mask.beginRow(batch, head, query);
                prefetchKey(ahead, query);
                b.loop(b.i64(0), row.end, kLanes, [&](Value key) {
                  auto blank = [&](Value value) { return blankUnseen(value, key, row, 0); };
                  Value p = probabilities(scaleScores(vector(scores, r, key), firstKey, key), shift);
                  Value dMasked = mulf(p, subf(vector(dScores, r, key), rowDelta));
                  if (op.getMaskGrad())
                    addToMaskGradient(maskGrad, query, firstKey, key, keys, blank(dMasked));
                  b.store(blank(p), scores.pointer, scores.index(b, r, key));
                  b.store(blank(mulf(dMasked, b.broadcast(number(scale), kLanes))), dScores.pointer,
                          dScores.index(b, r, key));
                });
              });
              auto addInto = [&](const Panel &to, int64_t columns) {
                return [&, columns](Value key, Value c, Value sum) {
                  Value total = addf(loadColumns(to, key, c, columns), sum);
                  if (everyKeyIsSeen())
                    total = arith::SelectOp::create(b, isFirstToSee(member, firstQuery, firstKey, key), sum, total);
                  storeColumns(to, key, c, total, columns);
                };
              };
              auto storeDv = addInto(dvRows, dvSums.columns), storeDk = addInto(dkRows, dkSums.columns);
              emitProduct(b, {visible, rows, b.i64(padTo(vDim, kLanes)), kTileRows, /*tileVectors=*/4,
                              [&](Value key, Value r) { return scalar(scores, r, key); },
                              [&](Value r, Value c) { return vector(doutRows, r, c); }, storeDv, seen.firstQuery});
              emitProduct(b, {visible, rows, b.i64(padTo(headDim, kLanes)), kTileRows, /*tileVectors=*/4,
                              [&](Value key, Value r) { return scalar(dScores, r, key); },
                              [&](Value r, Value c) { return vector(queryRows, r, c); }, storeDk, seen.firstQuery});
              emitProduct(b, {rows, visible, b.i64(padTo(headDim, kLanes)), kTileRows, /*tileVectors=*/4,
                              [&](Value r, Value key) { return scalar(dScores, r, key); },
                              [&](Value key, Value c) { return vector(keyRows, key, c); },
                              [&](Value r, Value c, Value sum) {
                                prefetchQuery(ahead, b.add(firstQuery, r), c);
                                Value merged = addf(loadColumns(dqRows, r, c, dqSums.columns), sum);
                                Value value = arith::SelectOp::create(b, isFirst, sum, merged);
                                storeColumns(dqRows, r, c, value, dqSums.columns);
                              },
                              /*firstK=*/nullptr, seen.endKey});
            });
          });
        });
        finishSums(dqSums, queryRowCount);
      });
      finishSums(dkSums, keyRowCount);
      finishSums(dvSums, keyRowCount);
    });
  });
  return checkStack(op);
}

static LogicalResult emitAttentionBackward(KernelBuilder &b, AttentionBackwardOp op) {
  return BackwardEmitter(b, op).emit();
}

void addAttentionBackwardEmitters(HostEmitters &emitters) { emitters.add(emitAttentionBackward); }

} // namespace spmd::kernel
