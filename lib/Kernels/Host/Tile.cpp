//===- Tile.cpp - register-tiled products and transposes ------------------===//

#include "Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace spmd::kernel {

Value loadF32(KernelBuilder &b, const Panel &panel, Value r, Value c, int64_t width) {
  Type f32 = b.getF32Type();
  Value value = b.load(panel.pointer, panel.narrow ? panel.narrow : f32, panel.index(b, r, c), width);
  return panel.narrow ? Value(arith::ExtFOp::create(b, getWideType(f32, width), value)) : value;
}

void storeF32(KernelBuilder &b, Value value, const Panel &panel, Value r, Value c) {
  if (panel.narrow) {
    auto vector = dyn_cast<VectorType>(value.getType());
    value = arith::TruncFOp::create(b, getWideType(panel.narrow, vector ? vector.getNumElements() : 1), value);
  }
  b.store(value, panel.pointer, panel.index(b, r, c));
}

/// One tile: `rows` rows from `row`, `vectors` vectors from `column`.
static void emitTile(KernelBuilder &b, const Product &product, Value row, int64_t rows, Value column, int64_t vectors) {
  SmallVector<Value> zeros(rows * vectors, b.number(getWideType(b.getF32Type(), kLanes), 0));
  Value begin = product.firstK ? product.firstK(row) : b.i64(0);
  Value end = product.endK ? product.endK(b.add(row, rows - 1)) : product.sizeK;
  auto addStep = [&](Value k, ValueRange sums) {
    SmallVector<Value> columns, out;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(product.b(k, b.add(column, v * kLanes)));
    for (int64_t r = 0; r < rows; ++r) {
      Value scalar = b.broadcast(product.a(b.add(row, r), k), kLanes);
      for (int64_t v = 0; v < vectors; ++v)
        out.push_back(math::FmaOp::create(b, scalar, columns[v], sums[r * vectors + v]));
    }
    return out;
  };
  // A processor foresees where a loop ends if it has few iterations, and a tile is all but over when it finds out late.
  constexpr int64_t kSteps = 4;
  Value whole = b.sub(end, b.mod(b.sub(end, begin), kSteps));
  SmallVector<Value> sums = b.loop(begin, whole, kSteps, zeros, [&](Value k, ValueRange carried) {
    SmallVector<Value> sums(carried);
    for (int64_t step = 0; step < kSteps; ++step)
      sums = addStep(b.add(k, step), sums);
    return sums;
  });
  sums = b.loop(whole, end, 1, sums, addStep);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      product.store(b.add(row, r), b.add(column, v * kLanes), sums[r * vectors + v]);
}

void emitProduct(KernelBuilder &b, const Product &product) {
  int64_t tileRows = product.tileRows, tileVectors = product.tileVectors;
  if (tileRows * tileVectors > b.getAccumulators()) {
    tileVectors = std::min<int64_t>(tileVectors, 2);
    tileRows = b.getAccumulators() / tileVectors;
  }
  Value whole = b.sub(product.rows, b.mod(product.rows, tileRows));
  auto emitColumns = [&](Value low, Value high, int64_t vectors) {
    b.loop(low, high, vectors * kLanes, [&](Value column) {
      Value first = b.i64(0);
      if (product.rowBegin) {
        auto alignDown = [&](Value row) { return b.min(b.sub(row, b.mod(row, tileRows)), whole); };
        first = alignDown(product.rowBegin(column));
        if (vectors == 2) {
          // Rows that want the first vector only.
          Value both = alignDown(product.rowBegin(b.add(column, kLanes)));
          b.loop(first, both, tileRows, [&](Value row) { emitTile(b, product, row, tileRows, column, 1); });
          first = both;
        }
      }
      b.loop(first, whole, tileRows, [&](Value row) { emitTile(b, product, row, tileRows, column, vectors); });
      b.loop(whole, product.rows, 1, [&](Value row) { emitTile(b, product, row, 1, column, vectors); });
    });
  };
  Value wholeColumns = b.sub(product.columns, b.mod(product.columns, tileVectors * kLanes));
  emitColumns(b.i64(0), wholeColumns, tileVectors);
  emitColumns(wholeColumns, product.columns, 1);
}

SmallVector<Value> transpose16(KernelBuilder &b, SmallVector<Value> rows) {
  // Swaps bit s of the row number with bit s of the lane number, for each s.
  for (int64_t s = 1; s < kLanes; s *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t l = 0; l < kLanes; ++l) {
      low.push_back(l & s ? kLanes + l - s : l);
      high.push_back(l & s ? kLanes + l : l + s);
    }
    for (int64_t i = 0; i < kLanes; ++i) {
      if (i & s)
        continue;
      Value x = rows[i], y = rows[i + s];
      rows[i] = vector::ShuffleOp::create(b, x, y, low);
      rows[i + s] = vector::ShuffleOp::create(b, x, y, high);
    }
  }
  return rows;
}

void packTransposed(KernelBuilder &b, const Panel &from, const Panel &to, Value rows, Value paddedRows,
                    int64_t columns) {
  Type f32 = b.getF32Type();
  int64_t wholeColumns = columns - columns % kLanes;
  Value wholeRows = b.sub(rows, b.mod(rows, kLanes));
  auto move = [&](Value r, Value c) { storeF32(b, loadF32(b, from, r, c), to, c, r); };
  b.loop(b.i64(0), wholeRows, kLanes, [&](Value r) {
    b.loop(b.i64(0), b.i64(wholeColumns), kLanes, [&](Value c) {
      SmallVector<Value> block;
      for (int64_t i = 0; i < kLanes; ++i)
        block.push_back(loadF32(b, from, b.add(r, i), c, kLanes));
      for (auto [i, value] : llvm::enumerate(transpose16(b, block)))
        b.store(value, to.pointer, to.index(b, b.add(c, i), r));
    });
    b.loop(b.i64(wholeColumns), b.i64(columns), 1,
           [&](Value c) { b.loop(r, b.add(r, kLanes), 1, [&](Value i) { move(i, c); }); });
  });
  b.loop(wholeRows, rows, 1, [&](Value r) { b.loop(b.i64(0), b.i64(columns), 1, [&](Value c) { move(r, c); }); });
  b.loop(b.i64(0), b.i64(columns), 1, [&](Value c) {
    b.loop(rows, paddedRows, 1, [&](Value r) { b.store(b.number(f32, 0), to.pointer, to.index(b, c, r)); });
  });
}

void packPadded(KernelBuilder &b, const Panel &from, const Panel &to, Value rows, int64_t columns) {
  Type f32 = b.getF32Type();
  int64_t whole = columns - columns % kLanes, padded = llvm::divideCeil(columns, kLanes) * kLanes;
  b.loop(b.i64(0), rows, 1, [&](Value r) {
    b.loop(b.i64(0), b.i64(whole), kLanes, [&](Value c) { storeF32(b, loadF32(b, from, r, c, kLanes), to, r, c); });
    b.loop(b.i64(whole), b.i64(columns), 1, [&](Value c) { storeF32(b, loadF32(b, from, r, c), to, r, c); });
    b.loop(b.i64(columns), b.i64(padded), 1,
           [&](Value c) { b.store(b.number(f32, 0), to.pointer, to.index(b, r, c)); });
  });
}

} // namespace spmd::kernel
