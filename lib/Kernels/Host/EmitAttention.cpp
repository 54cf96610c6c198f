//===- EmitAttention.cpp - loops of attention, forward and backward -------===//
//
// [Note: blocks of attention]
// A trip is one batch and head (backward: one key/value head with its query heads). Keys are taken in blocks of at most
// 256, queries in blocks of 32, so that scores of one pair of blocks (32 x 256) and the transposed keys stay in the
// cache, whatever the sequence length; nothing of size queries x keys exists.
//
// Forward, for each key block: S = scale q k^T + mask, softmax of the block, and out and lse are merged with those of
// the blocks before (weights exp(lse_old - lse), exp(lse_block - lse)). Backward makes the probabilities again from
// lse: P = exp(S - lse), dP = dout v^T, dS = scale P (dP - delta) with delta = rowsum(dout out), then dv += P^T dout,
// dk += dS^T q, dq += dS k. The mask is computed on the scores; the window of keys that its positions leave (see
// [Note: key windows]) bounds the blocks and blanks keys inside them. Sums run in the order of keys and queries, fixed
// by the sizes alone.
//
//===----------------------------------------------------------------------===//

#include "../ElementEmitter.h"
#include "../MaskEmitter.h"
#include "Emitters.h"
#include "Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

constexpr int64_t kQueryBlock = 32;
constexpr int64_t kKeyBlock = 256;
/// Scores are made 32 keys at a time.
constexpr int64_t kKeyTile = 2 * kLanes;

int64_t padTo(int64_t size, int64_t multiple) { return llvm::divideCeil(size, multiple) * multiple; }

/// What forward and backward share: places of rows, bounds of blocks, scores.
class AttentionEmitter {
public:
  template <typename OpT>
  AttentionEmitter(KernelBuilder &b, OpT op)
      : b(b), sizes(op.getSizes()), scale(op.getScale().convertToDouble()), f32(b.getF32Type()),
        wide(getWideType(f32, kLanes)), keyBlock(std::min(kKeyBlock, padTo(sizes.getKvLen(), kKeyTile))),
        mask(b, op, std::is_same_v<OpT, AttentionOp> ? 3 : 4, kLanes), window(mask.getWindow()) {}

protected:
  Panel panel(Value pointer, ViewAttr view, Value batch, Value head) {
    Value base = b.add(b.add(b.mul(batch, view.getBatch()), b.mul(head, view.getHead())), view.getOffset());
    return {pointer, base, view.getRow()};
  }
  /// Stack memory of rows of `columns` elements.
  Panel scratch(int64_t rows, int64_t columns) { return {b.stack(f32, rows * columns), b.i64(0), columns}; }
  /// A panel whose rows can be read by whole vectors: `from`, or a padded copy in `buffer` when rows are ragged.
  Panel readable(const Panel &from, const Panel &buffer, Value rows, int64_t columns) {
    if (columns % kLanes == 0)
      return from;
    packPadded(b, from, buffer, rows, columns);
    return buffer;
  }
  /// A buffer for `readable`.
  Panel paddedScratch(int64_t rows, int64_t columns) {
    return columns % kLanes == 0 ? Panel() : scratch(rows, padTo(columns, kLanes));
  }
  Value scalar(const Panel &p, Value r, Value c) { return b.load(p.pointer, f32, p.index(b, r, c)); }
  Value vector(const Panel &p, Value r, Value c) { return b.load(p.pointer, f32, p.index(b, r, c), kLanes); }
  Value number(double value) { return b.number(f32, value); }
  Value infinity() { return number(-std::numeric_limits<double>::infinity()); }
  Value isMinusInfinity(Value v) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, v, infinity()); }
  Value mulf(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value addf(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value subf(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value exp(Value x) { return math::ExpOp::create(b, x); }

  /// Stores the part of 16 columns from `column` that is inside `columns`.
  void storeColumns(const Panel &p, Value r, Value column, Value value, int64_t columns) {
    if (columns % kLanes == 0)
      return b.store(value, p.pointer, p.index(b, r, column));
    // The last vector of a ragged row goes lane by lane.
    Value rest = b.min(b.sub(b.i64(columns), column), b.i64(kLanes));
    Value whole = b.mul(b.floorDiv(rest, kLanes), kLanes);
    b.loop(b.i64(0), whole, kLanes, [&](Value) { b.store(value, p.pointer, p.index(b, r, column)); });
    if (!spill)
      spill = b.stack(f32, kLanes);
    b.store(value, spill, b.i64(0));
    b.loop(whole, rest, 1,
           [&](Value l) { b.store(b.load(spill, f32, l), p.pointer, p.index(b, r, b.add(column, l))); });
  }

  /// 16 columns from `column`; those outside of `columns` repeat the last.
  Value loadColumns(const Panel &p, Value r, Value column, int64_t columns) {
    if (columns % kLanes == 0)
      return vector(p, r, column);
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < kLanes; ++l)
      lanes.push_back(scalar(p, r, b.min(b.add(column, l), b.i64(columns - 1))));
    return b.pack(lanes);
  }

  void zeroRow(const Panel &p, Value r, int64_t columns) {
    b.loop(b.i64(0), b.i64(padTo(columns, kLanes)), kLanes,
           [&](Value c) { storeColumns(p, r, c, b.number(wide, 0), columns); });
  }

  /// scores(r, :) = q(r, :) k^T, unscaled, for `rows` rows and `keys` keys (a multiple of 32).
  void emitScores(const Panel &q, const Panel &keysT, const Panel &scores, Value rows, Value keys, int64_t depth) {
    emitProduct(b, {rows, b.i64(depth), keys, /*tileRows=*/8, /*tileVectors=*/2,
                    [&](Value r, Value k) { return scalar(q, r, k); },
                    [&](Value k, Value c) { return vector(keysT, k, c); },
                    [&](Value r, Value c, Value sum) { b.store(sum, scores.pointer, scores.index(b, r, c)); }});
  }

  /// 16 scores of a row, scaled and masked; -inf for keys outside [hidden, valid). `key` counts inside the block.
  Value finishScores(Value raw, Value firstKey, Value key, Value hidden, Value valid) {
    Value value = mulf(raw, b.broadcast(number(scale), kLanes));
    Value blank = b.broadcast(infinity(), kLanes);
    if (mask.isComputed())
      value = mask.apply(value, b.add(firstKey, key));
    Value keys = emitIota(b, key, kLanes);
    Value isValid = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keys, b.broadcast(valid, kLanes));
    value = arith::SelectOp::create(b, isValid, value, blank);
    if (!window.low)
      return value;
    Value isHidden = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keys, b.broadcast(hidden, kLanes));
    return arith::SelectOp::create(b, isHidden, blank, value);
  }

  /// Keys of the block at `firstKey` up to the last that queries up to `lastQuery` may see.
  Value getVisible(Value firstKey, Value keys, Value lastQuery) {
    if (!window.high)
      return keys;
    return b.max(b.min(b.sub(b.add(lastQuery, *window.high + 1), firstKey), keys), b.i64(0));
  }

  /// Keys of the block at `firstKey` before the first that query `query` may see.
  Value getHidden(Value firstKey, Value query) {
    return window.low ? b.max(b.sub(b.add(query, *window.low), firstKey), b.i64(0)) : b.i64(0);
  }

  /// Whether some query does not come to the first block of keys, so that what it adds to is zero before.
  bool startsFromZero() const { return window.low || (window.high && *window.high < 0); }

  /// Whether `firstKey` begins the first block of keys of all queries.
  Value isFirstBlock(Value firstKey) {
    if (startsFromZero())
      return b.constant(b.getBoolAttr(false));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, firstKey, b.i64(0));
  }

  /// Runs `body(firstKey, keys)` for the key blocks.
  void forKeyBlocks(llvm::function_ref<void(Value, Value)> body) {
    b.loop(b.i64(0), b.i64(sizes.getKvLen()), keyBlock,
           [&](Value firstKey) { body(firstKey, b.min(b.sub(b.i64(sizes.getKvLen()), firstKey), b.i64(keyBlock))); });
  }

  /// Runs `body(firstQuery, rows)` for the query blocks that may see some of `keys` keys from `firstKey` on.
  void forQueryBlocks(Value firstKey, Value keys, llvm::function_ref<void(Value, Value)> body) {
    Value first = b.i64(0), end = b.i64(sizes.getQLen());
    if (window.high)
      first = b.max(b.mul(b.floorDiv(b.add(firstKey, -*window.high), kQueryBlock), kQueryBlock), first);
    if (window.low)
      end = b.min(b.sub(b.add(firstKey, keys), b.i64(*window.low)), end);
    b.loop(first, end, kQueryBlock, [&](Value firstQuery) {
      body(firstQuery, b.min(b.sub(end, firstQuery), b.i64(kQueryBlock)));
    });
  }

  Value roundUp(Value v, int64_t multiple) { return b.mul(b.floorDiv(b.add(v, multiple - 1), multiple), multiple); }

  LogicalResult checkStack(Operation *op) {
    constexpr int64_t kLimit = 1 << 20;
    if (b.getStackBytes() > kLimit)
      return op->emitOpError("needs ") << b.getStackBytes() << " bytes of stack for head sizes " << sizes.getHeadDim()
                                       << " and " << sizes.getVDim() << ", more than " << kLimit;
    return success();
  }

  KernelBuilder &b;
  AttentionSizesAttr sizes;
  double scale;
  Type f32, wide;
  int64_t keyBlock;
  MaskEmitter mask;
  KeyWindow window;
  Value spill;
};

class ForwardEmitter : public AttentionEmitter {
public:
  ForwardEmitter(KernelBuilder &b, AttentionOp op) : AttentionEmitter(b, op), op(op) {}
  LogicalResult emit();

private:
  void emitSoftmaxRow(const Panel &scores, Value row, Value query, Value firstKey, Value keys, Value padded);

  AttentionOp op;
  /// Weights of the merge, per row of the query block.
  Panel oldWeight, newWeight;
  Panel lse;
};

class BackwardEmitter : public AttentionEmitter {
public:
  BackwardEmitter(KernelBuilder &b, AttentionBackwardOp op) : AttentionEmitter(b, op), op(op) {
    if (op.getMaskGrad())
      maskShape = cast<RankedTensorType>(op.getMaskGrad().getType()).getShape();
  }
  LogicalResult emit();

private:
  void forHeads(llvm::function_ref<void(Value, Value)> body);
  Panel getMaskGradient(Value batch, Value head);
  void zeroMaskGradient(Value batch, Value kvHead);
  void addToMaskGradient(const Panel &maskGrad, Value query, Value firstKey, Value key, Value keys, Value gradient);

  ArrayRef<int64_t> maskShape;
  AttentionBackwardOp op;
};

} // namespace

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Softmax of one row over one key block, in place and not normalized; the row's weights and lse. The order of the sum
/// is 16 lanes in order of keys, then halves.
void ForwardEmitter::emitSoftmaxRow(const Panel &scores, Value row, Value query, Value firstKey, Value keys,
                                    Value padded) {
  Value hidden = getHidden(firstKey, query), valid = getVisible(firstKey, keys, query);
  Value zero = number(0), one = number(1);
  Value maxima = b.loop(b.i64(0), padded, kLanes, b.broadcast(infinity(), kLanes), [&](Value key, ValueRange carried) {
    Value s = finishScores(vector(scores, row, key), firstKey, key, hidden, valid);
    b.store(s, scores.pointer, scores.index(b, row, key));
    return SmallVector<Value>{b.combine(ReduceKind::Max, carried[0], s)};
  })[0];
  Value maximum = b.reduceLanes(ReduceKind::Max, maxima);
  // A row that sees nothing has sum 0, not NaN.
  Value shift = arith::SelectOp::create(b, isMinusInfinity(maximum), zero, maximum);
  Value sums = b.loop(b.i64(0), padded, kLanes, b.number(wide, 0), [&](Value key, ValueRange carried) {
    Value e = exp(subf(vector(scores, row, key), b.broadcast(shift, kLanes)));
    b.store(e, scores.pointer, scores.index(b, row, key));
    return SmallVector<Value>{addf(carried[0], e)};
  })[0];
  Value sum = b.reduceLanes(ReduceKind::Add, sums);
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
  Value inverse = arith::SelectOp::create(b, isEmpty, zero, arith::DivFOp::create(b, one, sum));
  Value blockLse = arith::SelectOp::create(b, isEmpty, infinity(), addf(shift, math::LogOp::create(b, sum)));

  Value isFirst = isFirstBlock(firstKey);
  Value old = arith::SelectOp::create(b, isFirst, infinity(), scalar(lse, b.i64(0), query));
  Value top = arith::MaximumFOp::create(b, old, blockLse);
  Value base = arith::SelectOp::create(b, isMinusInfinity(top), zero, top);
  Value oldPart = exp(subf(old, base)), newPart = exp(subf(blockLse, base));
  Value total = addf(oldPart, newPart);
  Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
  Value share = arith::SelectOp::create(b, nothing, zero, arith::DivFOp::create(b, one, total));
  b.store(mulf(oldPart, share), oldWeight.pointer, row);
  b.store(mulf(mulf(newPart, share), inverse), newWeight.pointer, row);
  Value merged = arith::SelectOp::create(b, nothing, infinity(), addf(base, math::LogOp::create(b, total)));
  b.store(merged, lse.pointer, lse.index(b, b.i64(0), query));
}

LogicalResult ForwardEmitter::emit() {
  int64_t heads = sizes.getHeads(), depth = sizes.getHeadDim(), vDim = sizes.getVDim();
  Panel keysT = scratch(depth, keyBlock), scores = scratch(kQueryBlock, keyBlock);
  Panel valueBuffer = paddedScratch(keyBlock, vDim);
  oldWeight = scratch(1, kQueryBlock);
  newWeight = scratch(1, kQueryBlock);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value trip) {
    Value batch = b.floorDiv(trip, heads), head = b.mod(trip, heads);
    Value kvHead = b.floorDiv(head, heads / sizes.getKvHeads());
    Panel q = panel(b.getPointer(0), op.getQView(), batch, head);
    Panel k = panel(b.getPointer(1), op.getKView(), batch, kvHead);
    Panel v = panel(b.getPointer(2), op.getVView(), batch, kvHead);
    Panel out = panel(b.getResultPointer(0), op.getOutView(), batch, head);
    lse = {b.getResultPointer(1), b.mul(trip, sizes.getQLen()), 0};
    if (startsFromZero())
      b.loop(b.i64(0), b.i64(sizes.getQLen()), 1, [&](Value query) {
        zeroRow(out, query, vDim);
        b.store(infinity(), lse.pointer, lse.index(b, b.i64(0), query));
      });
    forKeyBlocks([&](Value firstKey, Value keys) {
      packTransposed(b, k.from(b, firstKey), keysT, keys, roundUp(keys, kKeyTile), depth);
      Panel values = readable(v.from(b, firstKey), valueBuffer, keys, vDim);
      Value isFirst = isFirstBlock(firstKey);
      forQueryBlocks(firstKey, keys, [&](Value firstQuery, Value rows) {
        Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
        Value padded = roundUp(visible, kKeyTile);
        emitScores(q.from(b, firstQuery), keysT, scores, rows, padded, depth);
        b.loop(b.i64(0), rows, 1, [&](Value row) {
          Value query = b.add(firstQuery, row);
          mask.beginRow(batch, head, query);
          emitSoftmaxRow(scores, row, query, firstKey, keys, padded);
        });
        Panel outRows = out.from(b, firstQuery);
        emitProduct(b, {rows, visible, b.i64(padTo(vDim, kLanes)), /*tileRows=*/4, /*tileVectors=*/4,
                        [&](Value r, Value key) { return scalar(scores, r, key); },
                        [&](Value key, Value c) { return vector(values, key, c); },
                        [&](Value r, Value c, Value sum) {
                          Value fresh = mulf(sum, b.broadcast(b.load(newWeight.pointer, f32, r), kLanes));
                          Value weight = b.broadcast(b.load(oldWeight.pointer, f32, r), kLanes);
                          Value merged = addf(fresh, mulf(loadColumns(outRows, r, c, vDim), weight));
                          Value value = arith::SelectOp::create(b, isFirst, fresh, merged);
                          storeColumns(outRows, r, c, value, vDim);
                        }});
      });
    });
  });
  return checkStack(op);
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

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

/// One trip is what shares no gradient with another: a batch and key/value head, or several where the gradient of the
/// mask is summed over them.
void BackwardEmitter::forHeads(llvm::function_ref<void(Value, Value)> body) {
  int64_t batches = sizes.getBatch(), kvHeads = sizes.getKvHeads();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value trip) {
    bool sumsBatches = op.getMaskGrad() && maskShape[0] == 1, sumsHeads = op.getMaskGrad() && maskShape[1] == 1;
    Value batch = sumsHeads ? trip : b.floorDiv(trip, kvHeads), head = sumsHeads ? b.i64(0) : b.mod(trip, kvHeads);
    if (op.getMaskGrad())
      zeroMaskGradient(sumsBatches ? b.i64(0) : batch, head);
    Value one = b.i64(1);
    Value firstBatch = sumsBatches ? b.i64(0) : batch, endBatch = sumsBatches ? b.i64(batches) : b.add(batch, one);
    b.loop(firstBatch, endBatch, 1, [&](Value batch) {
      b.loop(head, sumsHeads ? b.i64(kvHeads) : b.add(head, one), 1, [&](Value kvHead) { body(batch, kvHead); });
    });
  });
}

/// The rows of the mask's gradient for one query head.
Panel BackwardEmitter::getMaskGradient(Value batch, Value head) {
  int64_t plane = sizes.getQLen() * sizes.getKvLen();
  Value base = b.add(b.mul(batch, maskShape[0] == 1 ? 0 : maskShape[1] * plane),
                     b.mul(head, maskShape[1] == 1 ? 0 : plane));
  return {b.getResultPointer(op.getGrads().size()), base, sizes.getKvLen()};
}

void BackwardEmitter::zeroMaskGradient(Value batch, Value kvHead) {
  int64_t group = maskShape[1] == 1 ? 1 : sizes.getHeads() / sizes.getKvHeads();
  b.loop(b.i64(0), b.i64(group), 1, [&](Value member) {
    Panel rows = getMaskGradient(batch, b.add(b.mul(kvHead, group), member));
    b.loop(b.i64(0), b.i64(sizes.getQLen()), 1, [&](Value row) { zeroRow(rows, row, sizes.getKvLen()); });
  });
}

LogicalResult BackwardEmitter::emit() {
  int64_t group = sizes.getHeads() / sizes.getKvHeads();
  int64_t depth = sizes.getHeadDim(), vDim = sizes.getVDim();
  Value doutPointer = b.getPointer(0), qPointer = b.getPointer(1), kPointer = b.getPointer(2);
  unsigned next = 4 + op.getMaskInputs().size();
  Value vPointer = b.getPointer(3), outPointer = b.getPointer(next), lsePointer = b.getPointer(next + 1);
  unsigned results = op.getGrads().size();
  Value dqPointer = b.getResultPointer(0), dkPointer = b.getResultPointer(results / 2);
  Value dvPointer = b.getResultPointer(results - 1);

  Panel keysT = scratch(depth, keyBlock), valuesT = scratch(vDim, keyBlock);
  Panel scores = scratch(kQueryBlock, keyBlock), dScores = scratch(kQueryBlock, keyBlock);
  Panel keyBuffer = paddedScratch(keyBlock, depth), queryBuffer = paddedScratch(kQueryBlock, depth);
  Panel doutBuffer = paddedScratch(kQueryBlock, vDim), outBuffer = paddedScratch(kQueryBlock, vDim);

  forHeads([&](Value batch, Value kvHead) {
    Panel k = panel(kPointer, op.getKView(), batch, kvHead), v = panel(vPointer, op.getVView(), batch, kvHead);
    Panel dk = panel(dkPointer, op.getDkView(), batch, kvHead), dv = panel(dvPointer, op.getDvView(), batch, kvHead);
    b.loop(b.i64(0), b.i64(sizes.getKvLen()), 1, [&](Value row) {
      zeroRow(dk, row, depth);
      zeroRow(dv, row, vDim);
    });
    b.loop(b.i64(0), b.i64(group), 1, [&](Value member) {
      Value head = b.add(b.mul(kvHead, group), member);
      Panel q = panel(qPointer, op.getQView(), batch, head), dq = panel(dqPointer, op.getDqView(), batch, head);
      Panel dout = panel(doutPointer, op.getDoutView(), batch, head);
      Panel out = panel(outPointer, op.getOutView(), batch, head);
      Panel maskGrad = op.getMaskGrad() ? getMaskGradient(batch, head) : Panel();
      Value lseBase = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
      if (startsFromZero())
        b.loop(b.i64(0), b.i64(sizes.getQLen()), 1, [&](Value row) { zeroRow(dq, row, depth); });
      forKeyBlocks([&](Value firstKey, Value keys) {
        Panel blockK = k.from(b, firstKey);
        packTransposed(b, blockK, keysT, keys, roundUp(keys, kKeyTile), depth);
        packTransposed(b, v.from(b, firstKey), valuesT, keys, roundUp(keys, kKeyTile), vDim);
        Panel keyRows = readable(blockK, keyBuffer, keys, depth);
        Panel dkRows = dk.from(b, firstKey), dvRows = dv.from(b, firstKey);
        Value isFirst = isFirstBlock(firstKey);
        forQueryBlocks(firstKey, keys, [&](Value firstQuery, Value rows) {
          Panel doutRows = readable(dout.from(b, firstQuery), doutBuffer, rows, vDim);
          Panel outRows = readable(out.from(b, firstQuery), outBuffer, rows, vDim);
          Panel queryRows = readable(q.from(b, firstQuery), queryBuffer, rows, depth);
          Panel dqRows = dq.from(b, firstQuery);
          Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
          Value padded = roundUp(visible, kKeyTile);
          emitScores(queryRows, keysT, scores, rows, padded, depth);
          emitScores(doutRows, valuesT, dScores, rows, padded, vDim);
          b.loop(b.i64(0), rows, 1, [&](Value row) {
            Value query = b.add(firstQuery, row);
            Value products = b.loop(b.i64(0), b.i64(padTo(vDim, kLanes)), kLanes, b.number(wide, 0),
                                    [&](Value c, ValueRange carried) {
                                      Value product = mulf(vector(doutRows, row, c), vector(outRows, row, c));
                                      return SmallVector<Value>{addf(carried[0], product)};
                                    })[0];
            Value rowDelta = b.broadcast(b.reduceLanes(ReduceKind::Add, products), kLanes);
            Value rowLse = b.load(lsePointer, f32, b.add(lseBase, query));
            rowLse = arith::SelectOp::create(b, isMinusInfinity(rowLse), number(0), rowLse);
            Value hidden = getHidden(firstKey, query), valid = getVisible(firstKey, keys, query);
            mask.beginRow(batch, head, query);
            b.loop(b.i64(0), padded, kLanes, [&](Value key) {
              Value s = finishScores(vector(scores, row, key), firstKey, key, hidden, valid);
              Value p = exp(subf(s, b.broadcast(rowLse, kLanes)));
              Value dMasked = mulf(p, subf(vector(dScores, row, key), rowDelta));
              if (op.getMaskGrad())
                addToMaskGradient(maskGrad, query, firstKey, key, keys, dMasked);
              b.store(p, scores.pointer, scores.index(b, row, key));
              b.store(mulf(dMasked, b.broadcast(number(scale), kLanes)), dScores.pointer,
                      dScores.index(b, row, key));
            });
          });
          auto addInto = [&](const Panel &to, int64_t columns) {
            return [&, columns](Value r, Value c, Value sum) {
              storeColumns(to, r, c, addf(loadColumns(to, r, c, columns), sum), columns);
            };
          };
          auto storeDv = addInto(dvRows, vDim), storeDk = addInto(dkRows, depth);
          emitProduct(b, {visible, rows, b.i64(padTo(vDim, kLanes)), /*tileRows=*/4, /*tileVectors=*/4,
                          [&](Value key, Value r) { return scalar(scores, r, key); },
                          [&](Value r, Value c) { return vector(doutRows, r, c); }, storeDv});
          emitProduct(b, {visible, rows, b.i64(padTo(depth, kLanes)), /*tileRows=*/4, /*tileVectors=*/4,
                          [&](Value key, Value r) { return scalar(dScores, r, key); },
                          [&](Value r, Value c) { return vector(queryRows, r, c); }, storeDk});
          emitProduct(b, {rows, visible, b.i64(padTo(depth, kLanes)), /*tileRows=*/4, /*tileVectors=*/4,
                          [&](Value r, Value key) { return scalar(dScores, r, key); },
                          [&](Value key, Value c) { return vector(keyRows, key, c); },
                          [&](Value r, Value c, Value sum) {
                            Value merged = addf(loadColumns(dqRows, r, c, depth), sum);
                            Value value = arith::SelectOp::create(b, isFirst, sum, merged);
                            storeColumns(dqRows, r, c, value, depth);
                          }});
        });
      });
    });
  });
  return checkStack(op);
}

LogicalResult emitAttention(KernelBuilder &b, AttentionOp op) { return ForwardEmitter(b, op).emit(); }
LogicalResult emitAttentionBackward(KernelBuilder &b, AttentionBackwardOp op) { return BackwardEmitter(b, op).emit(); }

} // namespace spmd::kernel
