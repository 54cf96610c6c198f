//===- AttentionEmitter.h - what both passes of attention share -*- C++ -*-===//
//
// [Note: blocks of attention]
// An iteration is one batch and head (backward: one key/value head with its query heads). Keys are taken in blocks of
// at most 256, queries in blocks of 32, so that scores of one pair of blocks (32 x 256) and the transposed keys stay in
// the cache, whatever the sequence length; nothing of size queries x keys exists.
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

#ifndef SPMD_LIB_KERNELS_HOST_ATTENTIONEMITTER_H
#define SPMD_LIB_KERNELS_HOST_ATTENTIONEMITTER_H

#include "../MaskEmitter.h"
#include "Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace spmd::kernel {

inline constexpr int64_t kQueryBlock = 32;
inline constexpr int64_t kKeyBlock = 256;
/// Bytes of the sums of one span of rows.
inline constexpr int64_t kSpanBytes = 512 << 10;
/// Scores are made 32 keys at a time.
inline constexpr int64_t kKeyTile = 2 * kLanes;
/// The most rows of a tile of the products that read scores.
inline constexpr int64_t kTileRows = 4;

inline int64_t padTo(int64_t size, int64_t multiple) { return llvm::divideCeil(size, multiple) * multiple; }

/// What forward and backward share: places of rows, bounds of blocks, scores.
class AttentionEmitter {
public:
  template <typename OpT>
  AttentionEmitter(KernelBuilder &b, OpT op)
      : b(b), sizes(op.getSizes()), scale(op.getScale().convertToDouble()), f32(b.getF32Type()),
        wide(getWideType(f32, kLanes)), narrow(mlir::getElementTypeOrSelf(op.getQ().getType())),
        keyBlock(std::min(kKeyBlock, padTo(sizes.getKvLen(), kKeyTile))),
        mask(b, op, std::is_same_v<OpT, AttentionOp> ? 3 : 4, kLanes), window(mask.getWindow()) {
    if (narrow.isF32())
      narrow = {};
  }

protected:
  Panel panel(mlir::Value pointer, ViewAttr view, mlir::Value batch, mlir::Value head);
  /// Stack memory of rows of `columns` elements.
  Panel scratch(int64_t rows, int64_t columns) { return {b.stack(f32, rows * columns), b.i64(0), columns}; }
  /// The same for scores of a pair of blocks: rows are no power of two apart.
  Panel scoresScratch() { return scratch(kQueryBlock, keyBlock + kLanes); }
  bool needsCopy(int64_t columns) const { return narrow || columns % kLanes != 0; }
  /// A panel of f32 whose rows can be read by whole vectors: `from`, or a padded copy in `buffer` when they are ragged
  /// or narrow.
  Panel readable(const Panel &from, const Panel &buffer, mlir::Value rows, int64_t columns);
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
  int64_t getSpan(int64_t length, int64_t columns, int64_t multiple);
  /// Memory for the sums of a span; none when results hold them.
  Panel sumsScratch(int64_t span, int64_t columns) { return narrow ? scratch(span, padTo(columns, kLanes)) : Panel(); }
  /// The sums of rows from `first` on, whose row 0 is the result's row `first`.
  Sums getSums(const Panel &memory, const Panel &result, mlir::Value first, int64_t columns);
  void zeroSums(const Sums &sums, mlir::Value rows) {
    b.loop(b.i64(0), rows, 1, [&](mlir::Value row) { zeroRow(sums.rows, row, sums.columns); });
  }
  /// Takes up sums that an earlier span has rounded, and rounds those of a span.
  void resumeSums(const Sums &sums, mlir::Value rows);
  void finishSums(const Sums &sums, mlir::Value rows);
  /// Runs `body(first, rows)` for the spans of `length` rows.
  void forSpans(int64_t length, int64_t span, llvm::function_ref<void(mlir::Value, mlir::Value)> body);

  mlir::Value scalar(const Panel &p, mlir::Value r, mlir::Value c) { return loadF32(b, p, r, c); }
  mlir::Value vector(const Panel &p, mlir::Value r, mlir::Value c) { return loadF32(b, p, r, c, kLanes); }
  mlir::Value number(double value) { return b.number(f32, value); }
  mlir::Value infinity() { return number(-std::numeric_limits<double>::infinity()); }
  mlir::Value isMinusInfinity(mlir::Value v) {
    return mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OEQ, v, infinity());
  }
  mlir::Value mulf(mlir::Value x, mlir::Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  mlir::Value addf(mlir::Value x, mlir::Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  mlir::Value subf(mlir::Value x, mlir::Value y) { return mlir::arith::SubFOp::create(b, x, y); }
  mlir::Value exp(mlir::Value x) { return mlir::math::ExpOp::create(b, x); }

  /// Stores the part of 16 columns from `column` that is inside `columns`.
  void storeColumns(const Panel &p, mlir::Value r, mlir::Value column, mlir::Value value, int64_t columns);

  /// 16 columns from `column`; those outside of `columns` repeat the last.
  mlir::Value loadColumns(const Panel &p, mlir::Value r, mlir::Value column, int64_t columns);

  void zeroRow(const Panel &p, mlir::Value r, int64_t columns);

  /// What a pair of blocks leaves out, where the window ends: no callbacks where it does not.
  struct Seen {
    /// The first row of queries that sees a key of the block; the end of the keys that a row of queries sees.
    llvm::function_ref<mlir::Value(mlir::Value key)> firstQuery = nullptr;
    llvm::function_ref<mlir::Value(mlir::Value row)> endKey = nullptr;
  };

  /// scores(r, :) = q(r, :) k^T, unscaled, for `rows` rows and `keys` keys (a multiple of 32). Where no query of a tile
  /// sees a key, what was there stays.
  void emitScores(const Panel &q, const Panel &keysT, const Panel &scores, mlir::Value rows, mlir::Value keys,
                  int64_t sizeK, const Seen &seen) {
    emitProduct(
        b, {rows, b.i64(sizeK), keys, /*tileRows=*/8, /*tileVectors=*/2,
            [&](mlir::Value r, mlir::Value k) { return scalar(q, r, k); },
            [&](mlir::Value k, mlir::Value c) { return vector(keysT, k, c); },
            [&](mlir::Value r, mlir::Value c, mlir::Value sum) { b.store(sum, scores.pointer, scores.index(b, r, c)); },
            /*firstK=*/nullptr, /*endK=*/nullptr, seen.firstQuery});
  }

  /// The keys of a block that one query sees, and the end of those that are computed.
  struct Row {
    mlir::Value hidden, valid, end;
  };

  /// `value` for those of 16 keys from `key` that the row sees, else `blank`.
  mlir::Value blankUnseen(mlir::Value value, mlir::Value key, const Row &row, double blank);
  /// [Note: scores in powers of two]
  /// Probabilities are powers of two, and the scale includes log2(e): exp2 costs less than exp. A mask that is computed
  /// sees the score as it is, and its result is multiplied.
  mlir::Value scaleScores(mlir::Value raw, mlir::Value firstKey, mlir::Value key);
  /// What turns a score of `scaleScores` into a power of two.
  double getExponentScale() const { return mask.isComputed() ? M_LOG2E : scale * M_LOG2E; }
  /// exp2((score - extreme) getExponentScale()): the extreme of the row gives 1, however large it is, where a product
  /// that is rounded before would be off by powers of two.
  mlir::Value powersBelow(mlir::Value score, mlir::Value extreme);
  /// exp2(score getExponentScale() + shift), at most 1: `shift` is rounded, by more than 1 where scores are large.
  mlir::Value probabilities(mlir::Value score, mlir::Value shift);

  /// Reduces the 16 lanes of each row by halves, 16 rows at a time: `store` takes the results from row `r` on. Rows one
  /// by one would wait for every step.
  void reduceRows(ReduceKind kind, const Panel &lanes, mlir::Value rows,
                  llvm::function_ref<void(mlir::Value, mlir::Value)> store);

  /// Keys of the block at `firstKey` up to the last that queries up to `lastQuery` may see.
  mlir::Value getVisible(mlir::Value firstKey, mlir::Value keys, mlir::Value lastQuery);

  /// Runs `body` with what the blocks at `firstQuery` and `firstKey` see of each other.
  void withSeen(mlir::Value firstQuery, mlir::Value rows, mlir::Value firstKey, mlir::Value keys,
                llvm::function_ref<void(const Seen &)> body);

  /// The end of the keys whose scores a row of queries finishes: those that it sees, and those that a tile reads beside
  /// them, where the probabilities are zero.
  mlir::Value getRowEnd(const Seen &seen, mlir::Value row, mlir::Value padded) {
    return seen.endKey ? b.min(roundUp(b.add(seen.endKey(row), kTileRows - 1), kLanes), padded) : padded;
  }

  /// [Note: heads ahead]
  /// The rows of a head are few and far apart, so the machine does not see them coming. Where those of two heads fit in
  /// the second cache, the rows of the next head are prefetched while this one is computed, a few lines at a time: more
  /// at once than memory delivers would stop everything else.
  struct Ahead {
    Panel panel;
    int64_t columns;
  };
  struct NextHead {
    llvm::SmallVector<Ahead> queries, keys;
  };
  /// Where the head of a number is, counted over all batches.
  struct Place {
    mlir::Value batch, head, kvHead;
  };
  Place locate(mlir::Value number);
  /// `next`, or nothing where it does not fit.
  NextHead fitting(NextHead next);
  void prefetch(const Ahead &ahead, mlir::Value row, mlir::Value column);
  /// Prefetches 16 columns of a query.
  void prefetchQuery(const NextHead &next, mlir::Value query, mlir::Value column);
  /// Prefetches the key of the same number as a query.
  void prefetchKey(const NextHead &next, mlir::Value query);
  static int64_t getBytes(const Panel &panel) { return panel.narrow ? getStoredBytes(panel.narrow) : 4; }

  /// Keys of the block at `firstKey` before the first that query `query` may see.
  mlir::Value getHidden(mlir::Value firstKey, mlir::Value query) {
    return window.low ? b.max(b.sub(b.add(query, *window.low), firstKey), b.i64(0)) : b.i64(0);
  }

  /// Whether some query does not come to the first block of keys, so that what it adds to is zero before.
  bool startsFromZero() const { return window.low || (window.high && *window.high < 0); }

  /// Whether each key is seen by some query, so that the first block of queries that sees it sets its sums.
  bool everyKeyIsSeen() const {
    return !window.low && (!window.high || sizes.getKvLen() <= sizes.getQLen() + *window.high);
  }
  /// Whether no query of the heads before `member` of a group, nor a query before `firstQuery`, sees the key.
  mlir::Value isFirstToSee(mlir::Value member, mlir::Value firstQuery, mlir::Value firstKey, mlir::Value key);

  /// Whether `firstKey` begins the first block of keys of all queries.
  mlir::Value isFirstBlock(mlir::Value firstKey);

  /// Runs `body(firstKey, keys)` for the key blocks of a span.
  void forKeyBlocks(mlir::Value low, mlir::Value high, llvm::function_ref<void(mlir::Value, mlir::Value)> body) {
    b.loop(low, high, keyBlock,
           [&](mlir::Value firstKey) { body(firstKey, b.min(b.sub(high, firstKey), b.i64(keyBlock))); });
  }

  /// Runs `body(firstQuery, rows)` for the query blocks of a span that may see some of `keys` keys from `firstKey` on.
  void forQueryBlocks(mlir::Value low, mlir::Value high, mlir::Value firstKey, mlir::Value keys,
                      llvm::function_ref<void(mlir::Value, mlir::Value)> body);

  mlir::Value roundUp(mlir::Value v, int64_t multiple) {
    return b.mul(b.floorDiv(b.add(v, multiple - 1), multiple), multiple);
  }

  // What comes on top of every tensor once ([Note: bytes moved on CPUs]).
  /// Queries that some key of a block is seen by, summed over the blocks.
  int64_t countQueriesOfBlocks() const;
  /// Bytes of an element of a tensor, and of sums over blocks.
  int64_t getElementSize() const { return narrow ? getStoredBytes(narrow) : 4; }
  static constexpr int64_t kSumSize = 4;

  mlir::LogicalResult checkStack(mlir::Operation *op);

  KernelBuilder &b;
  AttentionSizesAttr sizes;
  double scale;
  mlir::Type f32, wide, narrow;
  int64_t keyBlock;
  MaskEmitter mask;
  KeyWindow window;
  mlir::Value spill;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_ATTENTIONEMITTER_H
