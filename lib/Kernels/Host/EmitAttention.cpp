//===- EmitAttention.cpp - loops of attention, forward -------------------===//

#include "AttentionEmitter.h"
#include "Emitters.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class ForwardEmitter : public AttentionEmitter {
public:
  ForwardEmitter(KernelBuilder &b, AttentionOp op) : AttentionEmitter(b, op), op(op) {}
  LogicalResult emit();

private:
  void countMoved(int64_t querySpan);
  void emitSoftmax(const Panel &scores, Value rows, Value firstKey, Value keys, llvm::function_ref<Row(Value)> begin);
  void emitMerge(Value row, Value query, Value firstKey, int64_t width);

  AttentionOp op;
  /// Per row of the query block: weights of the merge, the extreme score, the sum of the powers of two, and 16 lanes to
  /// reduce.
  Panel oldWeight, newWeight, rowExtreme, rowSum, rowLanes;
  Panel lse;
};

} // namespace

/// Softmax of the rows over one key block, in place and not normalized; their extremes and sums. The order of a sum is
/// 16 lanes in order of keys, then halves.
void ForwardEmitter::emitSoftmax(const Panel &scores, Value rows, Value firstKey, Value keys,
                                 llvm::function_ref<Row(Value)> begin) {
  // The largest exponent belongs to the largest score, or to the least where the scale is negative.
  bool isNegative = getExponentScale() < 0;
  ReduceKind kind = isNegative ? ReduceKind::Min : ReduceKind::Max;
  double nowhere = isNegative ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  b.loop(b.i64(0), rows, 1, [&](Value r) {
    Row row = begin(r);
    Value extremes = b.loop(b.i64(0), row.end, kLanes, b.number(wide, nowhere), [&](Value key, ValueRange carried) {
      Value s = scaleScores(vector(scores, r, key), firstKey, key);
      if (mask.isComputed())
        b.store(s, scores.pointer, scores.index(b, r, key));
      return SmallVector<Value>{b.combine(kind, carried[0], blankUnseen(s, key, row, nowhere))};
    })[0];
    b.store(extremes, rowLanes.pointer, rowLanes.index(b, r, b.i64(0)));
  });
  reduceRows(kind, rowLanes, rows, [&](Value r, Value extreme) {
    // A row that sees nothing has sum 0, not NaN.
    auto each = [&](double value) { return b.number(wide, value); };
    Value seesNothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, extreme, each(nowhere));
    b.store(arith::SelectOp::create(b, seesNothing, each(0), extreme), rowExtreme.pointer, r);
  });
  b.loop(b.i64(0), rows, 1, [&](Value r) {
    Row row = begin(r);
    Value extreme = b.load(rowExtreme.pointer, f32, r);
    Value sums = b.loop(b.i64(0), row.end, kLanes, b.number(wide, 0), [&](Value key, ValueRange carried) {
      Value e = blankUnseen(powersBelow(vector(scores, r, key), extreme), key, row, 0);
      b.store(e, scores.pointer, scores.index(b, r, key));
      return SmallVector<Value>{addf(carried[0], e)};
    })[0];
    b.store(sums, rowLanes.pointer, rowLanes.index(b, r, b.i64(0)));
  });
  reduceRows(ReduceKind::Add, rowLanes, rows, [&](Value r, Value sum) { b.store(sum, rowSum.pointer, r); });
}

/// Merges the block with those before it, for `width` rows side by side: the weights of both, and lse.
void ForwardEmitter::emitMerge(Value row, Value query, Value firstKey, int64_t width) {
  auto wide = [&](Value scalar) { return b.broadcast(scalar, width); };
  Value zero = wide(number(0)), one = wide(number(1)), nowhere = wide(infinity());
  auto isNowhere = [&](Value v) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, v, nowhere); };
  Value shift = mulf(b.load(rowExtreme.pointer, f32, row, width), wide(number(getExponentScale() * M_LN2)));
  Value sum = b.load(rowSum.pointer, f32, row, width);
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
  Value inverse = arith::SelectOp::create(b, isEmpty, zero, arith::DivFOp::create(b, one, sum));
  Value blockLse = arith::SelectOp::create(b, isEmpty, nowhere, addf(shift, math::LogOp::create(b, sum)));

  Value lseIndex = lse.index(b, b.i64(0), query);
  Value old = arith::SelectOp::create(b, isFirstBlock(firstKey), nowhere, b.load(lse.pointer, f32, lseIndex, width));
  Value top = arith::MaximumFOp::create(b, old, blockLse);
  Value base = arith::SelectOp::create(b, isNowhere(top), zero, top);
  Value oldPart = exp(subf(old, base)), newPart = exp(subf(blockLse, base));
  Value total = addf(oldPart, newPart);
  Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
  Value share = arith::SelectOp::create(b, nothing, zero, arith::DivFOp::create(b, one, total));
  b.store(mulf(oldPart, share), oldWeight.pointer, row);
  b.store(mulf(mulf(newPart, share), inverse), newWeight.pointer, row);
  Value merged = arith::SelectOp::create(b, nothing, nowhere, addf(base, math::LogOp::create(b, total)));
  b.store(merged, lse.pointer, lseIndex);
}

/// Where the cache does not hold a head, keys and values are read again by each query head of their group and by each
/// span of its queries; where it does not hold a span and a block of keys, the rows of the span are read again, and
/// their sums read and written, for each block of keys.
void ForwardEmitter::countMoved(int64_t querySpan) {
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim(), size = getElementSize();
  int64_t keyBytes = sizes.getKvLen() * (headDim + vDim) * size, rowBytes = headDim * size + vDim * kSumSize;
  int64_t kvHeads = sizes.getBatch() * sizes.getKvHeads(), heads = sizes.getBatch() * sizes.getHeads();
  int64_t spanBytes = std::min<int64_t>(querySpan, sizes.getQLen()) * rowBytes;
  if (keyBytes + sizes.getQLen() * rowBytes > b.getCacheBytes()) {
    int64_t readers = sizes.getHeads() / sizes.getKvHeads() * llvm::divideCeil(sizes.getQLen(), querySpan);
    b.addMovedBytes((readers - 1) * kvHeads * keyBytes);
  }
  if (spanBytes + keyBlock * (headDim + vDim) * kSumSize > b.getCacheBytes()) {
    int64_t again = std::max<int64_t>(countQueriesOfBlocks() - sizes.getQLen(), 0);
    b.addMovedBytes(heads * again * (headDim * size + 2 * vDim * kSumSize));
  }
}

LogicalResult ForwardEmitter::emit() {
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim();
  Panel keysT = scratch(headDim, keyBlock), scores = scoresScratch();
  Panel valueBuffer = paddedScratch(keyBlock, vDim),
        queryBuffer = narrow ? paddedScratch(kQueryBlock, headDim) : Panel();
  int64_t querySpan = getSpan(sizes.getQLen(), padTo(vDim, kLanes), kQueryBlock);
  countMoved(querySpan);
  Panel outMemory = sumsScratch(querySpan, vDim);
  oldWeight = scratch(1, kQueryBlock);
  newWeight = scratch(1, kQueryBlock);
  rowExtreme = scratch(1, kQueryBlock);
  rowSum = scratch(1, kQueryBlock);
  rowLanes = scratch(kQueryBlock, kLanes);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value iteration) {
    Place at = locate(iteration);
    Value batch = at.batch, head = at.head, kvHead = at.kvHead;
    Panel q = panel(b.getPointer(0), op.getQView(), batch, head);
    Panel k = panel(b.getPointer(1), op.getKView(), batch, kvHead);
    Panel v = panel(b.getPointer(2), op.getVView(), batch, kvHead);
    Panel out = panel(b.getResultPointer(0), op.getOutView(), batch, head);
    lse = {b.getResultPointer(1), b.mul(iteration, sizes.getQLen()), 0};
    Place next = locate(b.add(iteration, b.i64(1)));
    NextHead ahead = fitting({{{panel(b.getPointer(0), op.getQView(), next.batch, next.head), headDim},
                               {panel(b.getResultPointer(0), op.getOutView(), next.batch, next.head), vDim}},
                              {{panel(b.getPointer(1), op.getKView(), next.batch, next.kvHead), headDim},
                               {panel(b.getPointer(2), op.getVView(), next.batch, next.kvHead), vDim}}});
    forSpans(sizes.getQLen(), querySpan, [&](Value spanStart, Value spanRows) {
      Sums sums = getSums(outMemory, out, spanStart, vDim);
      Value spanEnd = b.add(spanStart, spanRows);
      if (startsFromZero()) {
        zeroSums(sums, spanRows);
        b.loop(spanStart, spanEnd, 1,
               [&](Value query) { b.store(infinity(), lse.pointer, lse.index(b, b.i64(0), query)); });
      }
      forKeyBlocks(b.i64(0), b.i64(sizes.getKvLen()), [&](Value firstKey, Value keys) {
        packTransposed(b, k.from(b, firstKey), keysT, keys, roundUp(keys, kKeyTile), headDim);
        Panel values = readable(v.from(b, firstKey), valueBuffer, keys, vDim);
        Value isFirst = isFirstBlock(firstKey);
        forQueryBlocks(spanStart, spanEnd, firstKey, keys, [&](Value firstQuery, Value rows) {
          Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
          Value padded = roundUp(visible, kKeyTile);
          Panel queries = q.from(b, firstQuery);
          if (narrow)
            queries = readable(queries, queryBuffer, rows, headDim);
          withSeen(firstQuery, rows, firstKey, keys, [&](const Seen &seen) {
            emitScores(queries, keysT, scores, rows, padded, headDim, seen);
            emitSoftmax(scores, rows, firstKey, keys, [&](Value row) {
              Value query = b.add(firstQuery, row);
              prefetchKey(ahead, query);
              mask.beginRow(batch, head, query);
              return Row{getHidden(firstKey, query), getVisible(firstKey, keys, query), getRowEnd(seen, row, padded)};
            });
            Value whole = b.sub(rows, b.mod(rows, kLanes));
            b.loop(b.i64(0), whole, kLanes,
                   [&](Value row) { emitMerge(row, b.add(firstQuery, row), firstKey, kLanes); });
            b.loop(whole, rows, 1, [&](Value row) { emitMerge(row, b.add(firstQuery, row), firstKey, 1); });
            Panel outRows = sums.rows.from(b, b.sub(firstQuery, spanStart));
            emitProduct(b, {rows, visible, b.i64(padTo(vDim, kLanes)), kTileRows, /*tileVectors=*/4,
                            [&](Value r, Value key) { return scalar(scores, r, key); },
                            [&](Value key, Value c) { return vector(values, key, c); },
                            [&](Value r, Value c, Value sum) {
                              prefetchQuery(ahead, b.add(firstQuery, r), c);
                              Value fresh = mulf(sum, b.broadcast(b.load(newWeight.pointer, f32, r), kLanes));
                              Value weight = b.broadcast(b.load(oldWeight.pointer, f32, r), kLanes);
                              Value merged = addf(fresh, mulf(loadColumns(outRows, r, c, sums.columns), weight));
                              Value value = arith::SelectOp::create(b, isFirst, fresh, merged);
                              storeColumns(outRows, r, c, value, sums.columns);
                            },
                            /*firstK=*/nullptr, seen.endKey});
          });
        });
      });
      finishSums(sums, spanRows);
    });
  });
  return checkStack(op);
}

static LogicalResult emitAttention(KernelBuilder &b, AttentionOp op) { return ForwardEmitter(b, op).emit(); }

void addAttentionEmitters(HostEmitters &emitters) { emitters.add(emitAttention); }

} // namespace spmd::kernel
