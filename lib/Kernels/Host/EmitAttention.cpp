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
// In bf16, rows are extended when a block is taken up, and all products, sums and probabilities are f32. What is summed
// over blocks stays in f32 on the stack, a span of rows at a time, and is rounded at the end of its span: out, dk and
// dv once, dq once for all keys that dk and dv have room for.
//
//===----------------------------------------------------------------------===//

#include "../ElementEmitter.h"
#include "../MaskEmitter.h"
#include "Emitters.h"
#include "Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

constexpr int64_t kQueryBlock = 32;
constexpr int64_t kKeyBlock = 256;
/// Bytes of the sums of one span of rows.
constexpr int64_t kSpanBytes = 512 << 10;
/// Scores are made 32 keys at a time.
constexpr int64_t kKeyTile = 2 * kLanes;
/// The most rows of a tile of the products that read scores.
constexpr int64_t kTileRows = 4;

int64_t padTo(int64_t size, int64_t multiple) { return llvm::divideCeil(size, multiple) * multiple; }

/// What forward and backward share: places of rows, bounds of blocks, scores.
class AttentionEmitter {
public:
  template <typename OpT>
  AttentionEmitter(KernelBuilder &b, OpT op)
      : b(b), sizes(op.getSizes()), scale(op.getScale().convertToDouble()), f32(b.getF32Type()),
        wide(getWideType(f32, kLanes)), narrow(getElementTypeOrSelf(op.getQ().getType())),
        keyBlock(std::min(kKeyBlock, padTo(sizes.getKvLen(), kKeyTile))),
        mask(b, op, std::is_same_v<OpT, AttentionOp> ? 3 : 4, kLanes), window(mask.getWindow()) {
    if (narrow.isF32())
      narrow = {};
  }

protected:
  Panel panel(Value pointer, ViewAttr view, Value batch, Value head) {
    Value base = b.add(b.add(b.mul(batch, view.getBatch()), b.mul(head, view.getHead())), view.getOffset());
    return {pointer, base, view.getRow(), narrow};
  }
  /// Stack memory of rows of `columns` elements.
  Panel scratch(int64_t rows, int64_t columns) { return {b.stack(f32, rows * columns), b.i64(0), columns}; }
  /// The same for scores of a pair of blocks: rows are no power of two apart.
  Panel scoresScratch() { return scratch(kQueryBlock, keyBlock + kLanes); }
  bool needsCopy(int64_t columns) const { return narrow || columns % kLanes != 0; }
  /// A panel of f32 whose rows can be read by whole vectors: `from`, or a padded copy in `buffer` when they are ragged
  /// or narrow.
  Panel readable(const Panel &from, const Panel &buffer, Value rows, int64_t columns) {
    if (!needsCopy(columns))
      return from;
    packPadded(b, from, buffer, rows, columns);
    return buffer;
  }
  /// A buffer for `readable`.
  Panel paddedScratch(int64_t rows, int64_t columns) {
    return needsCopy(columns) ? scratch(rows, padTo(columns, kLanes)) : Panel();
  }

  /// Rows that are summed up over blocks: those of a result themselves, or f32 for a span of narrow ones.
  struct Sums {
    Panel rows;
    int64_t columns; ///< of rows
    Panel result;
    int64_t resultColumns;
  };
  /// Rows of `length` that one span holds: all, or as many as there is room for, a multiple of `multiple`.
  int64_t getSpan(int64_t length, int64_t columns, int64_t multiple) {
    int64_t fit = std::max<int64_t>(kSpanBytes / (4 * columns) / multiple, 1) * multiple;
    return narrow ? std::min(padTo(length, multiple), fit) : length;
  }
  /// Memory for the sums of a span; none when results hold them.
  Panel sumsScratch(int64_t span, int64_t columns) { return narrow ? scratch(span, padTo(columns, kLanes)) : Panel(); }
  /// The sums of rows from `first` on, whose row 0 is the result's row `first`.
  Sums getSums(const Panel &memory, const Panel &result, Value first, int64_t columns) {
    Panel rows = result.from(b, first);
    return narrow ? Sums{memory, padTo(columns, kLanes), rows, columns} : Sums{rows, columns, rows, columns};
  }
  void zeroSums(const Sums &sums, Value rows) {
    b.loop(b.i64(0), rows, 1, [&](Value row) { zeroRow(sums.rows, row, sums.columns); });
  }
  /// Takes up sums that an earlier span has rounded, and rounds those of a span.
  void resumeSums(const Sums &sums, Value rows) {
    if (narrow)
      packPadded(b, sums.result, sums.rows, rows, sums.resultColumns);
  }
  void finishSums(const Sums &sums, Value rows) {
    if (!narrow)
      return;
    b.loop(b.i64(0), rows, 1, [&](Value row) {
      b.loop(b.i64(0), b.i64(sums.columns), kLanes,
             [&](Value c) { storeColumns(sums.result, row, c, vector(sums.rows, row, c), sums.resultColumns); });
    });
  }
  /// Runs `body(first, rows)` for the spans of `length` rows.
  void forSpans(int64_t length, int64_t span, llvm::function_ref<void(Value, Value)> body) {
    if (span >= length)
      return body(b.i64(0), b.i64(length));
    b.loop(b.i64(0), b.i64(length), span,
           [&](Value first) { body(first, b.min(b.sub(b.i64(length), first), b.i64(span))); });
  }

  Value scalar(const Panel &p, Value r, Value c) { return loadF32(b, p, r, c); }
  Value vector(const Panel &p, Value r, Value c) { return loadF32(b, p, r, c, kLanes); }
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
      return storeF32(b, value, p, r, column);
    // The last vector of a ragged row goes lane by lane.
    Value rest = b.min(b.sub(b.i64(columns), column), b.i64(kLanes));
    Value whole = b.mul(b.floorDiv(rest, kLanes), kLanes);
    b.loop(b.i64(0), whole, kLanes, [&](Value) { storeF32(b, value, p, r, column); });
    if (!spill)
      spill = b.stack(f32, kLanes);
    b.store(value, spill, b.i64(0));
    b.loop(whole, rest, 1, [&](Value l) { storeF32(b, b.load(spill, f32, l), p, r, b.add(column, l)); });
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

  /// What a pair of blocks leaves out, where the window ends: no callbacks where it does not.
  struct Seen {
    /// The first row of queries that sees a key of the block; the end of the keys that a row of queries sees.
    llvm::function_ref<Value(Value key)> firstQuery = nullptr;
    llvm::function_ref<Value(Value row)> endKey = nullptr;
  };

  /// scores(r, :) = q(r, :) k^T, unscaled, for `rows` rows and `keys` keys (a multiple of 32). Where no query of a tile
  /// sees a key, what was there stays.
  void emitScores(const Panel &q, const Panel &keysT, const Panel &scores, Value rows, Value keys, int64_t depth,
                  const Seen &seen) {
    emitProduct(b, {rows, b.i64(depth), keys, /*tileRows=*/8, /*tileVectors=*/2,
                    [&](Value r, Value k) { return scalar(q, r, k); },
                    [&](Value k, Value c) { return vector(keysT, k, c); },
                    [&](Value r, Value c, Value sum) { b.store(sum, scores.pointer, scores.index(b, r, c)); },
                    /*depthBegin=*/nullptr, /*depthEnd=*/nullptr, seen.firstQuery});
  }

  /// The keys of a block that one query sees, and the end of those that are computed.
  struct Row {
    Value hidden, valid, end;
  };

  /// `value` for those of 16 keys from `key` that the row sees, else `blank`.
  Value blankUnseen(Value value, Value key, const Row &row, double blank) {
    auto lanes = llvm::to_vector(llvm::seq<int32_t>(0, kLanes));
    Value iota = b.constant(DenseElementsAttr::get(VectorType::get({kLanes}, b.getI32Type()), ArrayRef<int32_t>(lanes)));
    auto isBefore = [&](Value end) {
      Value distance = arith::TruncIOp::create(b, b.getI32Type(), b.sub(end, key));
      return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, iota, b.broadcast(distance, kLanes));
    };
    Value blanks = b.number(wide, blank);
    value = arith::SelectOp::create(b, isBefore(row.valid), value, blanks);
    return window.low ? Value(arith::SelectOp::create(b, isBefore(row.hidden), blanks, value)) : value;
  }
  /// [Note: scores in powers of two]
  /// Probabilities are exp2(score log2(e) - shift), and the scale takes log2(e) in: that is one fused multiply-add and
  /// a function that costs less than exp. A mask that is computed sees the score as it is, and its result is multiplied.
  Value scaleScores(Value raw, Value firstKey, Value key) {
    if (!mask.isComputed())
      return raw;
    return mask.apply(mulf(raw, b.broadcast(number(scale), kLanes)), b.add(firstKey, key));
  }
  /// What turns a score of `scaleScores` into a power of two.
  double getExponentScale() const { return mask.isComputed() ? M_LOG2E : scale * M_LOG2E; }
  /// exp2(score getExponentScale() - shift)
  Value powers(Value score, Value shift) {
    Value exponent = math::FmaOp::create(b, score, b.number(wide, getExponentScale()), b.broadcast(shift, kLanes));
    return math::Exp2Op::create(b, exponent);
  }

  /// Reduces the 16 lanes of each row by halves, 16 rows at a time: `store` takes the results from row `r` on. Rows one
  /// by one would wait for every step.
  void reduceRows(ReduceKind kind, const Panel &lanes, Value rows, llvm::function_ref<void(Value, Value)> store) {
    static_assert(kQueryBlock % kLanes == 0, "whole groups, of which rows beyond the last are not used");
    b.loop(b.i64(0), rows, kLanes, [&](Value r) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < kLanes; ++i)
        parts.push_back(vector(lanes, b.add(r, i), b.i64(0)));
      parts = transpose16(b, parts);
      for (int64_t half = kLanes / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; ++i)
          parts[i] = b.combine(kind, parts[i], parts[i + half]);
      store(r, parts.front());
    });
  }

  /// Keys of the block at `firstKey` up to the last that queries up to `lastQuery` may see.
  Value getVisible(Value firstKey, Value keys, Value lastQuery) {
    if (!window.high)
      return keys;
    return b.max(b.min(b.sub(b.add(lastQuery, *window.high + 1), firstKey), keys), b.i64(0));
  }

  /// Runs `body` with what the blocks at `firstQuery` and `firstKey` see of each other.
  void withSeen(Value firstQuery, Value rows, Value firstKey, Value keys, llvm::function_ref<void(const Seen &)> body) {
    if (!window.high)
      return body({});
    auto first = [&](Value key) {
      Value row = b.sub(b.add(b.add(firstKey, key), -*window.high), firstQuery);
      return b.min(b.max(row, b.i64(0)), rows);
    };
    auto end = [&](Value row) { return getVisible(firstKey, keys, b.add(firstQuery, row)); };
    body({first, end});
  }

  /// The end of the keys whose scores a row of queries finishes: those that it sees, and those that a tile reads beside
  /// them, where the probabilities are zero.
  Value getRowEnd(const Seen &seen, Value row, Value padded) {
    return seen.endKey ? b.min(roundUp(b.add(seen.endKey(row), kTileRows - 1), kLanes), padded) : padded;
  }

  /// [Note: heads ahead]
  /// The rows of a head are few and far apart, so the machine does not see them coming. Where those of two heads fit in
  /// the second cache, the rows of the next head are asked for while this one is computed, a few lines at a time: more
  /// at once than memory delivers would stop everything else.
  struct Ahead {
    Panel panel;
    int64_t columns;
  };
  struct NextHead {
    SmallVector<Ahead> queries, keys;
  };
  /// Where the head of a number is, counted over all batches.
  struct Place {
    Value batch, head, kvHead;
  };
  Place locate(Value number) {
    int64_t heads = sizes.getHeads();
    Value head = b.mod(number, heads);
    return {b.floorDiv(number, heads), head, b.floorDiv(head, heads / sizes.getKvHeads())};
  }
  /// `next`, or nothing where it does not fit.
  NextHead fitting(NextHead next) {
    constexpr int64_t kHeadBytes = 320 << 10;
    int64_t bytes = 0;
    for (const Ahead &ahead : next.queries)
      bytes += sizes.getQLen() * ahead.columns * getBytes(ahead.panel);
    for (const Ahead &ahead : next.keys)
      bytes += sizes.getKvLen() * ahead.columns * getBytes(ahead.panel);
    return bytes <= kHeadBytes ? next : NextHead();
  }
  void prefetch(const Ahead &ahead, Value row, Value column) {
    Value address = b.address(ahead.panel.pointer, ahead.panel.narrow ? ahead.panel.narrow : f32,
                              ahead.panel.index(b, row, column));
    LLVM::Prefetch::create(b, address, /*rw=*/0, /*hint=*/2, /*cache=*/1);
  }
  /// Asks for 16 columns of a query.
  void askForQuery(const NextHead &next, Value query, Value column) {
    for (const Ahead &ahead : next.queries)
      prefetch(ahead, query, column);
  }
  /// Asks for the key of the same number as a query.
  void askForKey(const NextHead &next, Value query) {
    for (const Ahead &ahead : next.keys)
      for (int64_t c = 0; c < ahead.columns; c += kLanes * 4 / getBytes(ahead.panel))
        prefetch(ahead, b.min(query, b.i64(sizes.getKvLen() - 1)), b.i64(c));
  }
  static int64_t getBytes(const Panel &panel) { return panel.narrow ? getStoredBytes(panel.narrow) : 4; }

  /// Keys of the block at `firstKey` before the first that query `query` may see.
  Value getHidden(Value firstKey, Value query) {
    return window.low ? b.max(b.sub(b.add(query, *window.low), firstKey), b.i64(0)) : b.i64(0);
  }

  /// Whether some query does not come to the first block of keys, so that what it adds to is zero before.
  bool startsFromZero() const { return window.low || (window.high && *window.high < 0); }

  /// Whether each key is seen by some query, so that the first block of queries that sees it sets its sums.
  bool everyKeyIsSeen() const {
    return !window.low && (!window.high || sizes.getKvLen() <= sizes.getQLen() + *window.high);
  }
  /// Whether no query of the heads before `member` of a group, nor a query before `firstQuery`, sees the key.
  Value isFirstToSee(Value member, Value firstQuery, Value firstKey, Value key) {
    auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, predicate, x, y);
    };
    Value isFirst = compare(arith::CmpIPredicate::eq, firstQuery, b.i64(0));
    if (window.high) {
      Value isNew = compare(arith::CmpIPredicate::sge, b.add(firstKey, key), b.add(firstQuery, *window.high));
      isFirst = arith::OrIOp::create(b, isFirst, isNew);
    }
    return arith::AndIOp::create(b, isFirst, compare(arith::CmpIPredicate::eq, member, b.i64(0)));
  }

  /// Whether `firstKey` begins the first block of keys of all queries.
  Value isFirstBlock(Value firstKey) {
    if (startsFromZero())
      return b.constant(b.getBoolAttr(false));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, firstKey, b.i64(0));
  }

  /// Runs `body(firstKey, keys)` for the key blocks of a span.
  void forKeyBlocks(Value low, Value high, llvm::function_ref<void(Value, Value)> body) {
    b.loop(low, high, keyBlock, [&](Value firstKey) { body(firstKey, b.min(b.sub(high, firstKey), b.i64(keyBlock))); });
  }

  /// Runs `body(firstQuery, rows)` for the query blocks of a span that may see some of `keys` keys from `firstKey` on.
  void forQueryBlocks(Value low, Value high, Value firstKey, Value keys, llvm::function_ref<void(Value, Value)> body) {
    Value first = low, end = high;
    if (window.high)
      first = b.max(b.mul(b.floorDiv(b.add(firstKey, -*window.high), kQueryBlock), kQueryBlock), first);
    if (window.low)
      end = b.min(b.sub(b.add(firstKey, keys), b.i64(*window.low)), end);
    b.loop(first, end, kQueryBlock,
           [&](Value firstQuery) { body(firstQuery, b.min(b.sub(end, firstQuery), b.i64(kQueryBlock))); });
  }

  Value roundUp(Value v, int64_t multiple) { return b.mul(b.floorDiv(b.add(v, multiple - 1), multiple), multiple); }

  LogicalResult checkStack(Operation *op) {
    constexpr int64_t kLimit = 2 << 20;
    if (b.getStackBytes() > kLimit)
      return op->emitOpError("needs ") << b.getStackBytes() << " bytes of stack for head sizes " << sizes.getHeadDim()
                                       << " and " << sizes.getVDim() << ", more than " << kLimit;
    return success();
  }

  KernelBuilder &b;
  AttentionSizesAttr sizes;
  double scale;
  Type f32, wide, narrow;
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
  void emitSoftmax(const Panel &scores, Value rows, Value firstKey, Value keys, llvm::function_ref<Row(Value)> begin);
  void emitMerge(Value row, Value query, Value firstKey, int64_t width);

  AttentionOp op;
  /// Per row of the query block: weights of the merge, the shift and the sum of the powers of two, 16 lanes to reduce.
  Panel oldWeight, newWeight, rowShift, rowSum, rowLanes;
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
  void forEachQuery(int64_t group, int64_t span, llvm::function_ref<void(Value, Value, Value)> body);
  void beginQueryGradients(const Sums &sums, Value rows, Value keyStart, int64_t keySpan);
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

/// Softmax of the rows over one key block, in place and not normalized; their shifts and sums. The order of a sum is 16
/// lanes in order of keys, then halves.
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
    Value shift = arith::SelectOp::create(b, seesNothing, each(0), mulf(extreme, each(getExponentScale())));
    b.store(subf(each(0), shift), rowShift.pointer, r);
  });
  b.loop(b.i64(0), rows, 1, [&](Value r) {
    Row row = begin(r);
    Value shift = b.load(rowShift.pointer, f32, r);
    Value sums = b.loop(b.i64(0), row.end, kLanes, b.number(wide, 0), [&](Value key, ValueRange carried) {
      Value e = blankUnseen(powers(vector(scores, r, key), shift), key, row, 0);
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
  Value shift = mulf(b.load(rowShift.pointer, f32, row, width), wide(number(-M_LN2)));
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

LogicalResult ForwardEmitter::emit() {
  int64_t depth = sizes.getHeadDim(), vDim = sizes.getVDim();
  Panel keysT = scratch(depth, keyBlock), scores = scoresScratch();
  Panel valueBuffer = paddedScratch(keyBlock, vDim), queryBuffer = narrow ? paddedScratch(kQueryBlock, depth) : Panel();
  int64_t querySpan = getSpan(sizes.getQLen(), padTo(vDim, kLanes), kQueryBlock);
  Panel outMemory = sumsScratch(querySpan, vDim);
  oldWeight = scratch(1, kQueryBlock);
  newWeight = scratch(1, kQueryBlock);
  rowShift = scratch(1, kQueryBlock);
  rowSum = scratch(1, kQueryBlock);
  rowLanes = scratch(kQueryBlock, kLanes);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value trip) {
    Place at = locate(trip);
    Value batch = at.batch, head = at.head, kvHead = at.kvHead;
    Panel q = panel(b.getPointer(0), op.getQView(), batch, head);
    Panel k = panel(b.getPointer(1), op.getKView(), batch, kvHead);
    Panel v = panel(b.getPointer(2), op.getVView(), batch, kvHead);
    Panel out = panel(b.getResultPointer(0), op.getOutView(), batch, head);
    lse = {b.getResultPointer(1), b.mul(trip, sizes.getQLen()), 0};
    Place next = locate(b.add(trip, b.i64(1)));
    NextHead ahead = fitting({{{panel(b.getPointer(0), op.getQView(), next.batch, next.head), depth},
                               {panel(b.getResultPointer(0), op.getOutView(), next.batch, next.head), vDim}},
                              {{panel(b.getPointer(1), op.getKView(), next.batch, next.kvHead), depth},
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
        packTransposed(b, k.from(b, firstKey), keysT, keys, roundUp(keys, kKeyTile), depth);
        Panel values = readable(v.from(b, firstKey), valueBuffer, keys, vDim);
        Value isFirst = isFirstBlock(firstKey);
        forQueryBlocks(spanStart, spanEnd, firstKey, keys, [&](Value firstQuery, Value rows) {
          Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
          Value padded = roundUp(visible, kKeyTile);
          Panel queries = q.from(b, firstQuery);
          if (narrow)
            queries = readable(queries, queryBuffer, rows, depth);
          withSeen(firstQuery, rows, firstKey, keys, [&](const Seen &seen) {
            emitScores(queries, keysT, scores, rows, padded, depth, seen);
            emitSoftmax(scores, rows, firstKey, keys, [&](Value row) {
              Value query = b.add(firstQuery, row);
              askForKey(ahead, query);
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
                              askForQuery(ahead, b.add(firstQuery, r), c);
                              Value fresh = mulf(sum, b.broadcast(b.load(newWeight.pointer, f32, r), kLanes));
                              Value weight = b.broadcast(b.load(oldWeight.pointer, f32, r), kLanes);
                              Value merged = addf(fresh, mulf(loadColumns(outRows, r, c, sums.columns), weight));
                              Value value = arith::SelectOp::create(b, isFirst, fresh, merged);
                              storeColumns(outRows, r, c, value, sums.columns);
                            },
                            /*depthBegin=*/nullptr, seen.endKey});
          });
        });
      });
      finishSums(sums, spanRows);
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
  Panel scores = scoresScratch(), dScores = scoresScratch();
  Panel rowLanes = scratch(kQueryBlock, kLanes), deltas = scratch(1, kQueryBlock);
  Panel keyBuffer = paddedScratch(keyBlock, depth), queryBuffer = paddedScratch(kQueryBlock, depth);
  Panel doutBuffer = paddedScratch(kQueryBlock, vDim), outBuffer = paddedScratch(kQueryBlock, vDim);
  int64_t keySpan = getSpan(sizes.getKvLen(), padTo(depth, kLanes) + padTo(vDim, kLanes), keyBlock);
  int64_t querySpan = getSpan(sizes.getQLen(), padTo(depth, kLanes), kQueryBlock);
  Panel dqMemory = sumsScratch(querySpan, depth);
  Panel dkMemory = sumsScratch(keySpan, depth), dvMemory = sumsScratch(keySpan, vDim);

  forHeads([&](Value batch, Value kvHead) {
    Panel k = panel(kPointer, op.getKView(), batch, kvHead), v = panel(vPointer, op.getVView(), batch, kvHead);
    Panel dk = panel(dkPointer, op.getDkView(), batch, kvHead), dv = panel(dvPointer, op.getDvView(), batch, kvHead);
    forSpans(sizes.getKvLen(), keySpan, [&](Value keyStart, Value keyRowCount) {
      Sums dkSums = getSums(dkMemory, dk, keyStart, depth), dvSums = getSums(dvMemory, dv, keyStart, vDim);
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
        NextHead ahead = fitting({{{panel(qPointer, op.getQView(), next.batch, next.head), depth},
                                   {panel(doutPointer, op.getDoutView(), next.batch, next.head), vDim},
                                   {panel(outPointer, op.getOutView(), next.batch, next.head), vDim},
                                   {panel(dqPointer, op.getDqView(), next.batch, next.head), depth}},
                                  {{panel(kPointer, op.getKView(), next.batch, next.kvHead), depth},
                                   {panel(vPointer, op.getVView(), next.batch, next.kvHead), vDim},
                                   {panel(dkPointer, op.getDkView(), next.batch, next.kvHead), depth},
                                   {panel(dvPointer, op.getDvView(), next.batch, next.kvHead), vDim}}});
        Value lseBase = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
        Sums dqSums = getSums(dqMemory, dq, queryStart, depth);
        beginQueryGradients(dqSums, queryRowCount, keyStart, keySpan);
        forKeyBlocks(keyStart, b.add(keyStart, keyRowCount), [&](Value firstKey, Value keys) {
          Panel blockK = k.from(b, firstKey);
          packTransposed(b, blockK, keysT, keys, roundUp(keys, kKeyTile), depth);
          packTransposed(b, v.from(b, firstKey), valuesT, keys, roundUp(keys, kKeyTile), vDim);
          Panel keyRows = readable(blockK, keyBuffer, keys, depth);
          Value spanKey = b.sub(firstKey, keyStart);
          Panel dkRows = dkSums.rows.from(b, spanKey), dvRows = dvSums.rows.from(b, spanKey);
          Value isFirst = isFirstBlock(firstKey);
          forQueryBlocks(queryStart, queryEnd, firstKey, keys, [&](Value firstQuery, Value rows) {
            Panel doutRows = readable(dout.from(b, firstQuery), doutBuffer, rows, vDim);
            Panel outRows = readable(out.from(b, firstQuery), outBuffer, rows, vDim);
            Panel queryRows = readable(q.from(b, firstQuery), queryBuffer, rows, depth);
            Panel dqRows = dqSums.rows.from(b, b.sub(firstQuery, queryStart));
            Value visible = getVisible(firstKey, keys, b.sub(b.add(firstQuery, rows), b.i64(1)));
            Value padded = roundUp(visible, kKeyTile);
            withSeen(firstQuery, rows, firstKey, keys, [&](const Seen &seen) {
              emitScores(queryRows, keysT, scores, rows, padded, depth, seen);
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
                askForKey(ahead, query);
                b.loop(b.i64(0), row.end, kLanes, [&](Value key) {
                  auto blank = [&](Value value) { return blankUnseen(value, key, row, 0); };
                  Value p = powers(scaleScores(vector(scores, r, key), firstKey, key), shift);
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
              emitProduct(b, {visible, rows, b.i64(padTo(depth, kLanes)), kTileRows, /*tileVectors=*/4,
                              [&](Value key, Value r) { return scalar(dScores, r, key); },
                              [&](Value r, Value c) { return vector(queryRows, r, c); }, storeDk, seen.firstQuery});
              emitProduct(b, {rows, visible, b.i64(padTo(depth, kLanes)), kTileRows, /*tileVectors=*/4,
                              [&](Value r, Value key) { return scalar(dScores, r, key); },
                              [&](Value key, Value c) { return vector(keyRows, key, c); },
                              [&](Value r, Value c, Value sum) {
                                askForQuery(ahead, b.add(firstQuery, r), c);
                                Value merged = addf(loadColumns(dqRows, r, c, dqSums.columns), sum);
                                Value value = arith::SelectOp::create(b, isFirst, sum, merged);
                                storeColumns(dqRows, r, c, value, dqSums.columns);
                              },
                              /*depthBegin=*/nullptr, seen.endKey});
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

LogicalResult emitAttention(KernelBuilder &b, AttentionOp op) { return ForwardEmitter(b, op).emit(); }
LogicalResult emitAttentionBackward(KernelBuilder &b, AttentionBackwardOp op) { return BackwardEmitter(b, op).emit(); }

} // namespace spmd::kernel
