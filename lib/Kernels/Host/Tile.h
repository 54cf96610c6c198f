//===- Tile.h - register-tiled products and transposes ----------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_TILE_H
#define SPMD_LIB_KERNELS_HOST_TILE_H

#include "KernelBuilder.h"

namespace spmd::kernel {

/// Rows in memory: element (r, c) at `base + r * stride + c` of `pointer`. They hold f32, or a narrower type that is
/// extended when it is loaded and rounded when it is stored.
struct Panel {
  mlir::Value pointer;
  mlir::Value base;
  int64_t stride;
  /// Null for f32.
  mlir::Type narrow = {};

  mlir::Value index(KernelBuilder &b, mlir::Value row, mlir::Value column) const {
    return b.add(b.add(base, b.mul(row, stride)), column);
  }
  /// The panel that starts at row `row`.
  Panel from(KernelBuilder &b, mlir::Value row) const {
    return {pointer, b.add(base, b.mul(row, stride)), stride, narrow};
  }
};

/// `width` elements of a row from (r, c) on, as f32.
mlir::Value loadF32(KernelBuilder &b, const Panel &panel, mlir::Value r, mlir::Value c, int64_t width = 1);
/// Stores f32, a scalar or a vector.
void storeF32(KernelBuilder &b, mlir::Value value, const Panel &panel, mlir::Value r, mlir::Value c);

/// `C(r, :) = sum over k in [0, sizeK) of A(r, k) * B(k, :)` for rows [0, rows), in tiles of accumulators that stay in
/// registers: `tileRows` rows times `tileVectors` vectors of 16 columns, then rows one by one. Each element is one
/// chain of fused multiply-adds in the order of k, so the tile does not matter to the bits.
struct Product {
  mlir::Value rows, sizeK;
  /// Columns: [0, columns), a multiple of 16.
  mlir::Value columns;
  /// The largest tile; fewer where the CPU has fewer registers.
  int64_t tileRows, tileVectors;
  /// A(r, k), a scalar.
  llvm::function_ref<mlir::Value(mlir::Value r, mlir::Value k)> a;
  /// B(k, column ..), 16 of them.
  llvm::function_ref<mlir::Value(mlir::Value k, mlir::Value column)> b;
  /// Takes 16 finished columns of row r.
  llvm::function_ref<void(mlir::Value r, mlir::Value column, mlir::Value sum)> store;
  /// Where parts of A are zero, or of C not wanted: the first k that matters to the row `r` and those after it, the end
  /// of those that matter to `r` and those before, the first row that is wanted of a column and those after it.
  llvm::function_ref<mlir::Value(mlir::Value r)> firstK = nullptr, endK = nullptr;
  llvm::function_ref<mlir::Value(mlir::Value column)> rowBegin = nullptr;
};
void emitProduct(KernelBuilder &b, const Product &product);

/// Transposes 16 vectors of 16 lanes.
mlir::SmallVector<mlir::Value> transpose16(KernelBuilder &b, mlir::SmallVector<mlir::Value> rows);

/// to(c, r) = from(r, c) for r < rows, 0 for rows <= r < paddedRows, c < columns.
void packTransposed(KernelBuilder &b, const Panel &from, const Panel &to, mlir::Value rows, mlir::Value paddedRows,
                    int64_t columns);

/// to(r, c) = from(r, c) for r < rows, c < columns; 0 up to the next multiple of 16 columns.
void packPadded(KernelBuilder &b, const Panel &from, const Panel &to, mlir::Value rows, int64_t columns);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_TILE_H
