//===- AttentionScores.cpp - scores of attention on GPUs ------------------===//

#include "AttentionScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

HeadRows AttentionScores::getRows(Value pointer, Type type, ViewAttr view, Value batch, Value head, int64_t rows,
                                  int64_t columns) {
  Value base = b.add(b.add(b.mul(batch, view.getBatch()), b.mul(head, view.getHead())), view.getOffset());
  bool isAligned = llvm::all_of(std::array{view.getOffset(), view.getBatch(), view.getHead(), view.getRow(), columns},
                                [&](int64_t size) { return size % width == 0; });
  return {pointer, getElementTypeOrSelf(type), base, view.getRow(), rows, columns, isAligned};
}

Value AttentionScores::loadColumns(const HeadRows &from, Value row, Value column, int64_t width) {
  Value at = b.add(b.add(from.base, b.mul(row, from.stride)), column);
  Value value = b.load(from.pointer, from.element, at, width, width * getStoredBytes(from.element));
  return from.element.isF32() ? value : Value(arith::ExtFOp::create(b, getWideType(f32, width), value));
}

Value AttentionScores::isMinusInfinity(Value v) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, v, infinity());
}
Value AttentionScores::add(Value a, Value c) { return arith::AddFOp::create(b, a, c); }
Value AttentionScores::sub(Value a, Value c) { return arith::SubFOp::create(b, a, c); }
Value AttentionScores::mul(Value a, Value c) { return arith::MulFOp::create(b, a, c); }

Value AttentionScores::isWholeTile(Value firstQuery, Value firstKey, Tile tile, bool queriesAreRows) {
  int64_t queries = queriesAreRows ? tile.rows : tile.columns, keys = queriesAreRows ? tile.columns : tile.rows;
  Value lastQuery = b.add(firstQuery, queries - 1), lastKey = b.add(firstKey, keys - 1), isWhole;
  auto demand = [&](Value low, Value high) {
    Value holds = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, low, high);
    isWhole = isWhole ? Value(arith::AndIOp::create(b, isWhole, holds)) : holds;
  };
  if (window.high)
    demand(lastKey, b.add(firstQuery, *window.high));
  if (window.low)
    demand(b.add(lastQuery, *window.low), firstKey);
  if (sizes.getKvLen() % keys)
    demand(lastKey, b.i64(sizes.getKvLen() - 1));
  if (!queriesAreRows && sizes.getQLen() % queries)
    demand(lastQuery, b.i64(sizes.getQLen() - 1));
  return isWhole;
}

void AttentionScores::finishScores(Matrix &scores, int64_t rows, double factor, Value batch, Value head,
                                   Value firstQuery, Value firstKey, Tile tile, bool queriesAreRows, bool byPosition) {
  int64_t columns = static_cast<int64_t>(scores.size()) / rows;
  int64_t queries = queriesAreRows ? rows : columns, keys = queriesAreRows ? columns : rows;
  int64_t tileQueries = queriesAreRows ? tile.rows : tile.columns, tileKeys = queriesAreRows ? tile.columns : tile.rows;
  int64_t qLen = sizes.getQLen(), kvLen = sizes.getKvLen();
  bool hasOtherQueries = !queriesAreRows && qLen % tile.columns != 0;
  bool hasOtherKeys = kvLen % tileKeys != 0;
  auto narrow = [&](Value v) { return arith::TruncIOp::create(b, b.getI32Type(), v); };
  for (int64_t q = 0; q < queries; ++q) {
    Value query = queriesAreRows ? getRow(firstQuery, q) : getColumn(firstQuery, q);
    Value inside = qLen % tileQueries == 0 ? query : b.min(query, b.i64(qLen - 1));
    mask.beginRow(batch, head, inside);
    // The first and the last key that it sees.
    Value last, low;
    if (byPosition && (window.high || hasOtherKeys || hasOtherQueries)) {
      last = window.high ? b.min(b.add(query, *window.high), b.i64(kvLen - 1)) : b.i64(kvLen - 1);
      if (hasOtherQueries)
        last = arith::SelectOp::create(b, b.isLess(query, b.i64(qLen)), last, b.i64(-1));
      last = narrow(last);
    }
    if (byPosition && window.low)
      low = narrow(b.add(query, *window.low));
    for (int64_t k = 0; k < keys; ++k) {
      Value key = queriesAreRows ? getColumn(firstKey, k) : getRow(firstKey, k);
      Value &score = scores[queriesAreRows ? q * columns + k : k * columns + q];
      if (factor != 1)
        score = mul(score, number(factor));
      if (mask.isComputed())
        score = mask.apply(score, key);
      if (last) {
        Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, narrow(key), last);
        score = arith::SelectOp::create(b, isSeen, score, infinity());
      }
      if (low) {
        Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, narrow(key), low);
        score = arith::SelectOp::create(b, isSeen, score, infinity());
      }
    }
  }
}

std::pair<Value, Value> AttentionScores::getKeyBounds(Value firstQuery, int64_t queries, int64_t step) {
  Value begin = b.i64(0), end = b.i64(sizes.getKvLen());
  if (window.low)
    begin = b.max(b.mul(b.floorDiv(b.add(firstQuery, *window.low), step), step), begin);
  if (window.high) {
    Value lastQuery = b.min(b.add(firstQuery, queries - 1), b.i64(sizes.getQLen() - 1));
    end = b.min(b.add(lastQuery, *window.high + 1), end);
  }
  return {begin, end};
}

std::pair<Value, Value> AttentionScores::getQueryBounds(Value firstKey, int64_t keys, int64_t step) {
  Value begin = b.i64(0), end = b.i64(sizes.getQLen());
  if (window.high)
    begin = b.max(b.mul(b.floorDiv(b.add(firstKey, -*window.high), step), step), begin);
  if (window.low) {
    Value lastKey = b.min(b.add(firstKey, keys - 1), b.i64(sizes.getKvLen() - 1));
    end = b.min(b.add(lastKey, -*window.low + 1), end);
  }
  return {begin, end};
}

} // namespace spmd::kernel
