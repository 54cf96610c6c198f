//===- AttentionWarps.cpp - attention on tensor cores ---------------------===//

#include "AttentionWarps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

bool canBeWarpRows(Type type, ViewAttr view, int64_t columns) {
  Type element = getElementTypeOrSelf(type);
  return (element.isBF16() || element.isF16()) &&
         llvm::all_of(std::array{view.getOffset(), view.getBatch(), view.getHead(), view.getRow(), columns},
                      [](int64_t size) { return size % 8 == 0; });
}

AttentionScores::Tile AttentionWarps::chooseTile(const Device &device, int64_t rows, int64_t columns, int64_t heads,
                                                 int64_t most) {
  Tile tile = {64, most};
  auto isTooMuch = [&] {
    return rows <= tile.rows / 2 || heads * static_cast<int64_t>(llvm::divideCeil(rows, tile.rows)) < device.sms / 2;
  };
  while (tile.rows > kRows && isTooMuch())
    tile.rows /= 2;
  while (tile.columns > kRows && columns <= tile.columns / 2)
    tile.columns /= 2;
  return tile;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SharedTile AttentionWarps::placeTile(Value arena, int64_t &offset, int64_t rows, int64_t columns) {
  SharedTile tile = {b.address(arena, element, b.i64(offset)), getStride(columns)};
  offset += rows * tile.stride;
  return tile;
}

SmallVector<Value> AttentionWarps::loadTile(const HeadRows &from, Value first, int64_t rows, int64_t threads) {
  int64_t padded = getPadded(from.columns), perRow = padded / kWidth, count = rows * perRow;
  SmallVector<Value> items;
  for (int64_t done = 0; done < count; done += threads) {
    Value number = b.add(b.getThread(), done);
    if (done + threads > count)
      number = b.min(number, b.i64(count - 1));
    auto [row, vector] = b.divide(number, perRow, count);
    Value column = b.mul(vector, kWidth), fromRow = b.add(first, row), isThere;
    // Loaded from a place that is there, and blanked when it is another.
    if (from.rows % rows) {
      isThere = b.isLess(fromRow, b.i64(from.rows));
      fromRow = b.min(fromRow, b.i64(from.rows - 1));
    }
    if (padded != from.columns) {
      Value isColumn = b.isLess(column, b.i64(from.columns));
      isThere = isThere ? Value(arith::AndIOp::create(b, isThere, isColumn)) : isColumn;
      column = b.min(column, b.i64(from.columns - kWidth));
    }
    Value at = b.add(b.add(from.base, b.mul(fromRow, from.stride)), column);
    Value item = b.load(b.address(from.pointer, element, at), b.getI32Type(), b.i64(0), kWidth / 2, kWideBytes);
    if (isThere)
      item = arith::SelectOp::create(b, isThere, item, b.number(item.getType(), 0));
    items.push_back(item);
  }
  return items;
}

void AttentionWarps::storeTile(const SharedTile &to, ValueRange items, int64_t rows, int64_t columns, int64_t threads) {
  int64_t perRow = getPadded(columns) / kWidth, count = rows * perRow;
  for (auto [i, item] : llvm::enumerate(items)) {
    int64_t done = static_cast<int64_t>(i) * threads;
    Value number = b.add(b.getThread(), done);
    auto [row, vector] = b.divide(number, perRow, done + threads);
    Value at = b.add(b.mul(row, to.stride), b.mul(vector, kWidth));
    auto store = [&, item = item] { b.store(item, b.address(to.pointer, element, at), b.i64(0), kWideBytes); };
    done + threads > count ? b.when(b.isLess(number, b.i64(count)), store) : store();
  }
}

void AttentionWarps::storeRows(const HeadRows &to, Value first, const Matrix &sums, int64_t rows) {
  int64_t perRow = static_cast<int64_t>(sums.size()) / 2;
  for (int64_t i = 0; i < 2; ++i) {
    Value row = getRow(first, i);
    auto store = [&] {
      for (int64_t j = 0; j < to.columns / 4; j += 2) {
        Value at = b.add(b.add(to.base, b.mul(row, to.stride)), getColumn(b.i64(0), j));
        Value word = matrices.pack(sums[i * perRow + j], sums[i * perRow + j + 1]);
        b.store(word, b.address(to.pointer, element, at), b.i64(0));
      }
    };
    to.rows % rows == 0 ? store() : b.when(b.isLess(row, b.i64(to.rows)), store);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionWarps::multiplyInto(Matrix &sums, int64_t j, ValueRange left, ValueRange right) {
  int64_t perRow = static_cast<int64_t>(sums.size()) / 2;
  std::array<int64_t, 4> places = {2 * j, 2 * j + 1, perRow + 2 * j, perRow + 2 * j + 1};
  Matrix old;
  for (int64_t place : places)
    old.push_back(sums[place]);
  for (auto [place, sum] : llvm::zip_equal(places, matrices.multiply(left, right, old)))
    sums[place] = sum;
}

AttentionScores::Matrix AttentionWarps::dot(const SharedTile &rows, const SharedTile &columns, int64_t count,
                                            int64_t sizeK) {
  Matrix sums(count / 2, number(0));
  for (int64_t k = 0; k < sizeK; k += kRows) {
    Matrix left = matrices.loadLeft(rows, firstOfWarp(), k);
    for (int64_t n = 0; n < count; n += kRows) {
      Matrix right = matrices.loadRight(columns, n, k, /*isTransposed=*/false);
      for (int64_t half = 0; half < 2; ++half)
        multiplyInto(sums, n / 8 + half, left, ArrayRef(right).slice(2 * half, 2));
    }
  }
  return sums;
}

AttentionScores::Matrix AttentionWarps::accumulate(Matrix sums, const Matrix &weights, const SharedTile &values,
                                                   int64_t columns) {
  int64_t perRow = static_cast<int64_t>(weights.size()) / 2;
  for (int64_t k = 0; k < perRow * 4; k += kRows) {
    // Upper and lower rows of eight columns, then of the next eight.
    Matrix left;
    for (int64_t side : {0, 2})
      for (int64_t i : {0, 1}) {
        int64_t at = i * perRow + k / 4 + side;
        left.push_back(matrices.pack(weights[at], weights[at + 1]));
      }
    for (int64_t n = 0; n < columns; n += kRows) {
      Matrix right = matrices.loadRight(values, k, n, /*isTransposed=*/true);
      for (int64_t half = 0; half < 2; ++half)
        multiplyInto(sums, n / 8 + half, left, ArrayRef(right).slice(2 * half, 2));
    }
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Most tiles of a window are whole: nothing is compared there.
void AttentionWarps::finishScores(Matrix &scores, Value batch, Value head, Value firstQuery, Value firstKey, Tile tile,
                                  bool queriesAreRows) {
  double factor = scale / getFactor();
  auto finish = [&](bool byPosition) {
    Matrix finished(scores);
    AttentionScores::finishScores(finished, 2, factor, batch, head, firstQuery, firstKey, tile, queriesAreRows,
                                  byPosition);
    return finished;
  };
  Value isWhole = isWholeTile(firstQuery, firstKey, tile, queriesAreRows);
  scores = isWhole ? b.chooseValues(
                         isWhole, [&] { return finish(false); }, [&] { return finish(true); })
                   : finish(false);
}

/// Below, shifts are rounded by 2^-16 at most.
static constexpr double kLargeShift = 256;

Value AttentionWarps::isAnyLarge(ValueRange shifts) {
  Value largest;
  for (Value shift : shifts) {
    Value size = math::AbsFOp::create(b, shift);
    largest = largest ? Value(LLVM::MaxNumOp::create(b, largest, size)) : size;
  }
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, largest, number(kLargeShift));
}

Value AttentionWarps::exp2(Value exponent) { return math::Exp2Op::create(b, exponent, arith::FastMathFlags::afn); }

Value AttentionWarps::exp2(Value score, Value shift) {
  return exp2(math::FmaOp::create(b, score, number(getExponentScale()), shift));
}

} // namespace spmd::kernel
