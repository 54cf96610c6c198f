//===- AttentionEmitter.cpp - what both passes of attention share ---------===//

#include "AttentionEmitter.h"
#include "../ElementEmitter.h"

using namespace mlir;

namespace spmd::kernel {

Panel AttentionEmitter::panel(Value pointer, ViewAttr view, Value batch, Value head) {
  Value base = b.add(b.add(b.mul(batch, view.getBatch()), b.mul(head, view.getHead())), view.getOffset());
  return {pointer, base, view.getRow(), narrow};
}

Panel AttentionEmitter::readable(const Panel &from, const Panel &buffer, Value rows, int64_t columns) {
  if (!needsCopy(columns))
    return from;
  packPadded(b, from, buffer, rows, columns);
  return buffer;
}

int64_t AttentionEmitter::getSpan(int64_t length, int64_t columns, int64_t multiple) {
  int64_t fit = std::max<int64_t>(kSpanBytes / (4 * columns) / multiple, 1) * multiple;
  return narrow ? std::min(padTo(length, multiple), fit) : length;
}

AttentionEmitter::Sums AttentionEmitter::getSums(const Panel &memory, const Panel &result, Value first,
                                                 int64_t columns) {
  Panel rows = result.from(b, first);
  return narrow ? Sums{memory, padTo(columns, kLanes), rows, columns} : Sums{rows, columns, rows, columns};
}

void AttentionEmitter::resumeSums(const Sums &sums, Value rows) {
  if (narrow)
    packPadded(b, sums.result, sums.rows, rows, sums.resultColumns);
}

void AttentionEmitter::finishSums(const Sums &sums, Value rows) {
  if (!narrow)
    return;
  b.loop(b.i64(0), rows, 1, [&](Value row) {
    b.loop(b.i64(0), b.i64(sums.columns), kLanes,
           [&](Value c) { storeColumns(sums.result, row, c, vector(sums.rows, row, c), sums.resultColumns); });
  });
}

void AttentionEmitter::forSpans(int64_t length, int64_t span, llvm::function_ref<void(Value, Value)> body) {
  if (span >= length)
    return body(b.i64(0), b.i64(length));
  b.loop(b.i64(0), b.i64(length), span,
         [&](Value first) { body(first, b.min(b.sub(b.i64(length), first), b.i64(span))); });
}

void AttentionEmitter::storeColumns(const Panel &p, Value r, Value column, Value value, int64_t columns) {
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

Value AttentionEmitter::loadColumns(const Panel &p, Value r, Value column, int64_t columns) {
  if (columns % kLanes == 0)
    return vector(p, r, column);
  SmallVector<Value> lanes;
  for (int64_t l = 0; l < kLanes; ++l)
    lanes.push_back(scalar(p, r, b.min(b.add(column, l), b.i64(columns - 1))));
  return b.pack(lanes);
}

void AttentionEmitter::zeroRow(const Panel &p, Value r, int64_t columns) {
  b.loop(b.i64(0), b.i64(padTo(columns, kLanes)), kLanes,
         [&](Value c) { storeColumns(p, r, c, b.number(wide, 0), columns); });
}

Value AttentionEmitter::blankUnseen(Value value, Value key, const Row &row, double blank) {
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

Value AttentionEmitter::scaleScores(Value raw, Value firstKey, Value key) {
  if (!mask.isComputed())
    return raw;
  return mask.apply(mulf(raw, b.broadcast(number(scale), kLanes)), b.add(firstKey, key));
}

Value AttentionEmitter::powersBelow(Value score, Value extreme) {
  Value distance = subf(score, b.broadcast(extreme, kLanes));
  return math::Exp2Op::create(b, mulf(distance, b.number(wide, getExponentScale())));
}

Value AttentionEmitter::probabilities(Value score, Value shift) {
  Value exponent = math::FmaOp::create(b, score, b.number(wide, getExponentScale()), b.broadcast(shift, kLanes));
  Value zero = b.number(wide, 0);
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, exponent, zero);
  return math::Exp2Op::create(b, arith::SelectOp::create(b, isAbove, zero, exponent));
}

void AttentionEmitter::reduceRows(ReduceKind kind, const Panel &lanes, Value rows,
                                  llvm::function_ref<void(Value, Value)> store) {
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

Value AttentionEmitter::getVisible(Value firstKey, Value keys, Value lastQuery) {
  if (!window.high)
    return keys;
  return b.max(b.min(b.sub(b.add(lastQuery, *window.high + 1), firstKey), keys), b.i64(0));
}

void AttentionEmitter::withSeen(Value firstQuery, Value rows, Value firstKey, Value keys,
                                llvm::function_ref<void(const Seen &)> body) {
  if (!window.high)
    return body({});
  auto first = [&](Value key) {
    Value row = b.sub(b.add(b.add(firstKey, key), -*window.high), firstQuery);
    return b.min(b.max(row, b.i64(0)), rows);
  };
  auto end = [&](Value row) { return getVisible(firstKey, keys, b.add(firstQuery, row)); };
  body({first, end});
}

AttentionEmitter::Place AttentionEmitter::locate(Value number) {
  int64_t heads = sizes.getHeads();
  Value head = b.mod(number, heads);
  return {b.floorDiv(number, heads), head, b.floorDiv(head, heads / sizes.getKvHeads())};
}

int64_t AttentionEmitter::countQueriesOfBlocks() const {
  int64_t queries = 0;
  for (int64_t firstKey = 0; firstKey < sizes.getKvLen(); firstKey += keyBlock) {
    int64_t lastKey = std::min<int64_t>(firstKey + keyBlock, sizes.getKvLen()) - 1;
    int64_t first = window.high ? std::max<int64_t>(firstKey - *window.high, 0) : 0;
    int64_t last = sizes.getQLen() - 1;
    if (window.low)
      last = std::min(last, lastKey - *window.low);
    queries += std::max<int64_t>(last - first + 1, 0);
  }
  return queries;
}

AttentionEmitter::NextHead AttentionEmitter::fitting(NextHead next) {
  constexpr int64_t kHeadBytes = 320 << 10;
  int64_t bytes = 0;
  for (const Ahead &ahead : next.queries)
    bytes += sizes.getQLen() * ahead.columns * getBytes(ahead.panel);
  for (const Ahead &ahead : next.keys)
    bytes += sizes.getKvLen() * ahead.columns * getBytes(ahead.panel);
  return bytes <= kHeadBytes ? next : NextHead();
}

void AttentionEmitter::prefetch(const Ahead &ahead, Value row, Value column) {
  Value address =
      b.address(ahead.panel.pointer, ahead.panel.narrow ? ahead.panel.narrow : f32, ahead.panel.index(b, row, column));
  LLVM::Prefetch::create(b, address, /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

void AttentionEmitter::prefetchQuery(const NextHead &next, Value query, Value column) {
  for (const Ahead &ahead : next.queries)
    prefetch(ahead, query, column);
}

void AttentionEmitter::prefetchKey(const NextHead &next, Value query) {
  for (const Ahead &ahead : next.keys)
    for (int64_t c = 0; c < ahead.columns; c += kLanes * 4 / getBytes(ahead.panel))
      prefetch(ahead, b.min(query, b.i64(sizes.getKvLen() - 1)), b.i64(c));
}

Value AttentionEmitter::isFirstToSee(Value member, Value firstQuery, Value firstKey, Value key) {
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

Value AttentionEmitter::isFirstBlock(Value firstKey) {
  if (startsFromZero())
    return b.constant(b.getBoolAttr(false));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, firstKey, b.i64(0));
}

void AttentionEmitter::forQueryBlocks(Value low, Value high, Value firstKey, Value keys,
                                      llvm::function_ref<void(Value, Value)> body) {
  Value first = low, end = high;
  if (window.high)
    first = b.max(b.mul(b.floorDiv(b.add(firstKey, -*window.high), kQueryBlock), kQueryBlock), first);
  if (window.low)
    end = b.min(b.sub(b.add(firstKey, keys), b.i64(*window.low)), end);
  b.loop(first, end, kQueryBlock,
         [&](Value firstQuery) { body(firstQuery, b.min(b.sub(end, firstQuery), b.i64(kQueryBlock))); });
}

LogicalResult AttentionEmitter::checkStack(Operation *op) {
  constexpr int64_t kLimit = 2 << 20;
  if (b.getStackBytes() > kLimit)
    return op->emitOpError("needs ") << b.getStackBytes() << " bytes of stack for head sizes " << sizes.getHeadDim()
                                     << " and " << sizes.getVDim() << ", more than " << kLimit;
  return success();
}

} // namespace spmd::kernel
