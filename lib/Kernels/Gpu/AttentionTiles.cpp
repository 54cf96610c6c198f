//===- AttentionTiles.cpp - tiles of attention on GPUs --------------------===//

#include "AttentionTiles.h"
#include "BlockOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

FailureOr<AttentionScores::Tile> AttentionTiles::chooseTile(Operation *op, int64_t rows, int64_t columns, int64_t heads,
                                                            int64_t sums,
                                                            llvm::function_ref<int64_t(Tile)> getFloats) const {
  // Four by four values a thread: eight loads of 16 bytes then feed 64 multiply-adds.
  Tile first = {4 * kSide, 4 * kSide};
  auto isTooMuch = [&](int64_t tileRows) {
    int64_t blocks = heads * llvm::divideCeil(rows, tileRows);
    return rows <= tileRows / 2 || blocks < device.sms || getSumRegisters(tileRows, sums) > getMaxSums();
  };
  while (first.rows > kSide && isTooMuch(first.rows))
    first.rows /= 2;
  while (first.columns > kSide && columns <= first.columns / 2)
    first.columns /= 2;
  auto shrink = [&](Tile t) -> Tile {
    return t.columns > t.rows / 2 && t.columns > kSide ? Tile{t.rows, t.columns / 2} : Tile{t.rows / 2, t.columns};
  };
  auto count = [](Tile t) { return t.rows * t.columns; };
  // Two blocks on an SM hide each other's loads, but not at any price: a thread has eight values at least.
  for (Tile tile = first; count(tile) >= std::min(count(first), 8 * kThreads); tile = shrink(tile))
    if (fitTwice(getFloats(tile)))
      return tile;
  for (Tile tile = first; tile.rows >= kSide; tile = shrink(tile))
    if (getFloats(tile) * getStoredBytes(f32) <= device.sharedBytesPerBlock)
      return tile;
  return op->emitOpError("with head sizes ")
         << sizes.getHeadDim() << " and " << sizes.getVDim() << " needs "
         << getFloats({kSide, kSide}) * getStoredBytes(f32) << " bytes of shared memory, more than the "
         << device.sharedBytesPerBlock << " a block has on " << device.chip;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void AttentionTiles::fillTile(const SharedTile &to, const HeadRows &from, Value first, int64_t rows) {
  int64_t padded = llvm::alignTo(from.columns, kSide), perRow = padded / kWidth, items = rows * perRow;
  bool isWhole = from.rows % rows == 0 && padded == from.columns && from.isAligned;
  struct Item {
    Value place, value;
  };
  auto loadItem = [&](Value number) -> Item {
    auto [row, vector] = b.divide(number, perRow, items);
    Value column = b.mul(vector, kWidth), fromRow = b.add(first, row);
    Value place = b.add(b.mul(row, to.stride), column);
    if (isWhole)
      return {place, loadColumns(from, fromRow, column, kWidth)};
    // Loaded from a place that is there, and blanked when it is another.
    Value inside = b.min(fromRow, b.i64(from.rows - 1)), isRow = b.isLess(fromRow, b.i64(from.rows));
    auto loadInside = [&](Value column, int64_t width) {
      Value value = loadColumns(from, inside, b.min(column, b.i64(from.columns - width)), width);
      Value isThere = arith::AndIOp::create(b, isRow, b.isLess(column, b.i64(from.columns)));
      return arith::SelectOp::create(b, isThere, value, b.number(value.getType(), 0));
    };
    if (from.isAligned)
      return {place, loadInside(column, kWidth)};
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < kWidth; ++l)
      lanes.push_back(loadInside(b.add(column, l), 1));
    return {place, b.pack(lanes)};
  };
  // A few loads are in flight before the first store.
  constexpr int64_t kInFlight = 4;
  for (int64_t done = 0; done < items; done += kInFlight * kThreads) {
    SmallVector<std::pair<Value, Item>> loaded;
    for (int64_t i = done; i < std::min(done + kInFlight * kThreads, items); i += kThreads) {
      Value number = b.add(b.getThread(), i);
      bool isPartial = i + kThreads > items;
      Value isItem = isPartial ? b.isLess(number, b.i64(items)) : Value();
      loaded.push_back({isItem, loadItem(isPartial ? b.min(number, b.i64(items - 1)) : number)});
    }
    for (auto &[isItem, item] : loaded) {
      auto store = [&, item = item] { b.store(item.value, to.pointer, item.place, kWidth * getStoredBytes(f32)); };
      isItem ? b.when(isItem, store) : store();
    }
  }
}

SharedTile AttentionTiles::placeTile(Value arena, int64_t &offset, int64_t rows, int64_t columns) {
  SharedTile tile = {b.address(arena, f32, b.i64(offset)), getStride(columns)};
  offset += rows * tile.stride;
  return tile;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

AttentionTiles::Matrix AttentionTiles::dot(const SharedTile &rows, const SharedTile &columns, Tile tile,
                                           int64_t sizeK) {
  int64_t m = tile.rows / kSide, n = tile.columns / kSide;
  Value firstRow = b.mul(y, rows.stride), firstColumn = b.mul(x, columns.stride);
  auto load = [&](const SharedTile &from, Value first, int64_t i, Value d) {
    return b.load(from.pointer, f32, b.add(b.add(first, d), i * kSide * from.stride), kWidth,
                  kWidth * getStoredBytes(f32));
  };
  return b.loop(
      b.i64(0), b.i64(llvm::alignTo(sizeK, kWidth)), kWidth, Matrix(m * n, number(0)), [&](Value d, ValueRange sums) {
        Matrix next(sums), left, right;
        for (int64_t i = 0; i < m; ++i)
          left.push_back(load(rows, firstRow, i, d));
        for (int64_t j = 0; j < n; ++j)
          right.push_back(load(columns, firstColumn, j, d));
        for (int64_t k = 0; k < kWidth; ++k)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              next[i * n + j] = math::FmaOp::create(b, b.lane(left[i], k), b.lane(right[j], k), next[i * n + j]);
        return next;
      });
}

void AttentionTiles::storeMatrix(const SharedTile &to, const Matrix &matrix, Tile tile) {
  int64_t n = tile.columns / kSide;
  for (int64_t e = 0; e < static_cast<int64_t>(matrix.size()); ++e)
    b.store(matrix[e], to.pointer, b.add(b.mul(getRow(b.i64(0), e / n), to.stride), getColumn(b.i64(0), e % n)));
}

int64_t AttentionTiles::getChunk(int64_t columns) const {
  int64_t perThread = llvm::divideCeil(columns, kSide), chunk = kWidth;
  while (perThread % chunk)
    chunk /= 2;
  return chunk;
}

AttentionTiles::Matrix AttentionTiles::getZeros(int64_t rows, int64_t columns) {
  return Matrix(rows / kSide * getChunks(columns), b.number(getWideType(f32, getChunk(columns)), 0));
}

AttentionTiles::Matrix AttentionTiles::accumulate(Matrix sums, const SharedTile &weights, const SharedTile &values,
                                                  Tile tile, int64_t columns) {
  int64_t m = tile.rows / kSide, chunk = getChunk(columns), chunks = getChunks(columns);
  Value firstRow = b.mul(y, weights.stride), firstColumn = b.mul(x, chunk);
  return b.loop(b.i64(0), b.i64(tile.columns), kWidth, sums, [&](Value c, ValueRange carried) {
    Matrix next(carried), left;
    for (int64_t i = 0; i < m; ++i)
      left.push_back(b.load(weights.pointer, f32, b.add(b.add(firstRow, c), i * kSide * weights.stride), kWidth,
                            kWidth * getStoredBytes(f32)));
    Value first = b.add(b.mul(c, values.stride), firstColumn);
    for (int64_t k = 0; k < kWidth; ++k)
      for (int64_t j = 0; j < chunks; ++j) {
        Value right = b.load(values.pointer, f32, b.add(first, k * values.stride + j * kSide * chunk), chunk,
                             chunk * getStoredBytes(f32));
        for (int64_t i = 0; i < m; ++i)
          next[i * chunks + j] =
              math::FmaOp::create(b, b.broadcast(b.lane(left[i], k), chunk), right, next[i * chunks + j]);
      }
    return next;
  });
}

void AttentionTiles::storeRows(const HeadRows &to, Value first, const Matrix &sums, int64_t rows) {
  int64_t chunk = getChunk(to.columns), chunks = getChunks(to.columns);
  for (int64_t i = 0; i < rows / kSide; ++i) {
    Value row = getRow(first, i);
    auto store = [&] {
      for (int64_t j = 0; j < chunks; ++j) {
        Value column = b.add(b.mul(x, chunk), j * kSide * chunk);
        Value at = b.add(b.add(to.base, b.mul(row, to.stride)), column), value = sums[i * chunks + j];
        if (!to.element.isF32())
          value = arith::TruncFOp::create(b, getWideType(to.element, chunk), value);
        if (to.columns % kSide == 0 && (to.isAligned || chunk == 1)) {
          b.store(value, to.pointer, at, chunk * getStoredBytes(to.element));
          continue;
        }
        for (int64_t l = 0; l < chunk; ++l)
          b.when(b.isLess(b.add(column, l), b.i64(to.columns)),
                 [&] { b.store(b.lane(value, l), to.pointer, b.add(at, l)); });
      }
    };
    to.rows % rows == 0 ? store() : b.when(b.isLess(row, b.i64(to.rows)), store);
  }
}

Value AttentionTiles::exp(Value a) { return math::ExpOp::create(b, a); }

} // namespace spmd::kernel
