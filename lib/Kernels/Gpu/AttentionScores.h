//===- AttentionScores.h - scores of attention on GPUs -----------*- C++ -*-===//
//
// What kernels of attention have in common, whatever their products run on: where rows of a head lie in memory, and how
// scores become masked scores. Of a tile of scores, rows x columns, a thread holds some rows and, of each of these, the
// same columns; which they are, the subclass says.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_ATTENTIONSCORES_H
#define SPMD_LIB_KERNELS_GPU_ATTENTIONSCORES_H

#include "../MaskEmitter.h"
#include "Device.h"
#include "GpuBuilder.h"
#include "SharedTile.h"

namespace spmd::kernel {

/// Rows of one batch and head in global memory.
struct HeadRows {
  mlir::Value pointer;
  mlir::Type element;
  /// Where row 0 begins; rows are `stride` elements apart.
  mlir::Value base;
  int64_t stride, rows, columns;
  /// Whether `width` columns from a multiple of `width` on are aligned to as many elements.
  bool isAligned;
};

class AttentionScores {
public:
  virtual ~AttentionScores() = default;

protected:
  /// `width` elements are read at a time along a row.
  template <typename OpT>
  AttentionScores(GpuBuilder &b, OpT op, const Device &device, unsigned firstMaskOperand, int64_t width)
      : b(b), sizes(op.getSizes()), scale(op.getScale().convertToDouble()), f32(b.getF32Type()), device(device),
        mask(b, op, firstMaskOperand, /*width=*/1), window(mask.getWindow()), width(width) {}

  /// Rows and columns of the block's tile.
  struct Tile {
    int64_t rows, columns;
  };
  /// Row i and column j of the tile that the thread holds, `first` being the tile's.
  virtual mlir::Value getRow(mlir::Value first, int64_t i) = 0;
  virtual mlir::Value getColumn(mlir::Value first, int64_t j) = 0;

  HeadRows getRows(mlir::Value pointer, mlir::Type type, ViewAttr view, mlir::Value batch, mlir::Value head,
                   int64_t rows, int64_t columns);
  /// Loads `width` columns as f32.
  mlir::Value loadColumns(const HeadRows &from, mlir::Value row, mlir::Value column, int64_t width);

  // Matrices in registers: row i and column j of those that the thread holds are at i * columns + j.
  using Matrix = llvm::SmallVector<mlir::Value>;
  mlir::Value number(double value) { return b.number(f32, value); }
  mlir::Value infinity() { return number(-std::numeric_limits<double>::infinity()); }
  mlir::Value isMinusInfinity(mlir::Value v);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  /// Whether all queries of the tile see all of its keys, as far as that follows from their positions; null if it
  /// always does.
  mlir::Value isWholeTile(mlir::Value firstQuery, mlir::Value firstKey, Tile tile, bool queriesAreRows);
  /// Masks the scores of `rows` rows, scaled by `factor` first, of queries from `firstQuery` and keys from `firstKey`
  /// on; -inf where the query is none or does not see the key, if `byPosition`. Queries are the rows, or else the
  /// columns.
  void finishScores(Matrix &scores, int64_t rows, double factor, mlir::Value batch, mlir::Value head,
                    mlir::Value firstQuery, mlir::Value firstKey, Tile tile, bool queriesAreRows,
                    bool byPosition = true);
  /// Bounds of the keys that queries [firstQuery, firstQuery + queries) may see, the lower a multiple of `step`, and of
  /// the queries that may see keys.
  std::pair<mlir::Value, mlir::Value> getKeyBounds(mlir::Value firstQuery, int64_t queries, int64_t step);
  std::pair<mlir::Value, mlir::Value> getQueryBounds(mlir::Value firstKey, int64_t keys, int64_t step);

  GpuBuilder &b;
  AttentionSizesAttr sizes;
  double scale;
  mlir::Type f32;
  const Device &device;
  MaskEmitter mask;
  KeyWindow window;
  int64_t width;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONSCORES_H
