//===- AttentionTiles.h - tiles of attention on GPUs -------------*- C++ -*-===//
//
// [Note: tiles of attention on GPUs]
// A block of 16 x 16 threads owns a tile of rows (queries, or keys) and streams tiles of columns (keys, or queries)
// past it. Tiles of q, k, v and dout lie in shared memory as f32, row by row; rows are four words longer than they need
// be, so that threads whose rows follow each other meet different banks. Of a matrix rows x columns, thread (y, x)
// holds in registers the rows y + 16 i and the columns x + 16 j; a row is thus that of 16 neighbouring lanes, and
// maxima and sums along it are shuffles. Two products make everything:
//   dot         M(r, c) = sum over d of X(r, d) Y(c, d), both read 16 bytes along d
//   accumulate  A(r, :) += sum over c of M(r, c) Y(c, :), M having gone through shared memory
// Every element is one chain of fused multiply-adds in the order of d, or of c.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_ATTENTIONTILES_H
#define SPMD_LIB_KERNELS_GPU_ATTENTIONTILES_H

#include "../MaskEmitter.h"
#include "Device.h"
#include "GpuBuilder.h"

namespace spmd::kernel {

/// Rows of one batch and head in global memory.
struct HeadRows {
  mlir::Value pointer;
  mlir::Type element;
  /// Where row 0 begins; rows are `stride` elements apart.
  mlir::Value base;
  int64_t stride, rows, columns;
  /// Whether four columns from a multiple of four on are aligned to four elements.
  bool isAligned;
};

/// Rows of f32 in shared memory.
struct SharedTile {
  mlir::Value pointer;
  int64_t stride;
};

/// What the blocks of attention, forward and backward, share.
class AttentionTiles {
protected:
  /// Threads along the rows and the columns of a tile.
  static constexpr int64_t kSide = 16;
  static constexpr int64_t kThreads = kSide * kSide;
  /// Elements read at a time along d.
  static constexpr int64_t kWidth = 4;

  template <typename OpT>
  AttentionTiles(GpuBuilder &b, OpT op, const Device &device, unsigned firstMaskOperand)
      : b(b), sizes(op.getSizes()), scale(op.getScale().convertToDouble()), f32(b.getF32Type()), device(device),
        mask(b, op, firstMaskOperand, /*width=*/1), window(mask.getWindow()) {
    y = b.floorDiv(b.getThread(), kSide);
    x = b.mod(b.getThread(), kSide);
  }

  // Sizes.
  /// Words from one row of a shared tile to the next.
  static int64_t getStride(int64_t columns) { return llvm::alignTo(columns, kSide) + kWidth; }
  /// Rows and columns of the block's tile: as large as the work and the SMs allow, as `sums` (what each row sums up)
  /// leaves registers, and as `getFloats` says they fit into shared memory: that of an SM twice, if the tile need not
  /// be tiny for that, else that of a block. Fails with an error on `op` if none fits.
  struct Tile {
    int64_t rows, columns;
  };
  mlir::FailureOr<Tile> chooseTile(mlir::Operation *op, int64_t rows, int64_t columns, int64_t heads, int64_t sums,
                                   llvm::function_ref<int64_t(Tile)> getFloats) const;
  /// Registers of a thread that hold what `sums` columns of its rows sum up.
  static int64_t getSumRegisters(int64_t rows, int64_t sums) { return rows / kSide * llvm::divideCeil(sums, kSide); }
  /// Whether columns are taken four at a time. Else their places take more registers.
  bool isWide() const { return getChunk(sizes.getHeadDim()) == kWidth && getChunk(sizes.getVDim()) == kWidth; }
  /// The most registers for sums, and blocks that are to share an SM: two, as far as sums leave registers for the rest.
  int64_t getMaxSums() const { return isWide() ? 64 : 48; }
  int64_t getResidentBlocks(int64_t sumRegisters) const { return sumRegisters <= (isWide() ? 32 : 16) ? 2 : 1; }
  /// Whether `floats` in shared memory leave room for another block on the SM.
  bool fitTwice(int64_t floats) const {
    return device.getBlocksPerSM(kThreads, floats * getStoredBytes(f32)) >= 2;
  }

  // Memory.
  HeadRows getRows(mlir::Value pointer, mlir::Type type, ViewAttr view, mlir::Value batch, mlir::Value head,
                   int64_t rows, int64_t columns);
  /// Loads `width` columns as f32.
  mlir::Value loadColumns(const HeadRows &from, mlir::Value row, mlir::Value column, int64_t width);
  /// Copies rows [first, first + rows) to `to`, all threads together; zeros where there are none, and up to the next
  /// multiple of 16 columns.
  void fillTile(const SharedTile &to, const HeadRows &from, mlir::Value first, int64_t rows);
  /// Tiles one after the other in `arena`, from element `offset` on.
  SharedTile placeTile(mlir::Value arena, int64_t &offset, int64_t rows, int64_t columns);

  // Matrices in registers: row i (of rows / 16) and column j (of columns / 16) is at i * (columns / 16) + j.
  using Matrix = llvm::SmallVector<mlir::Value>;
  mlir::Value getRow(mlir::Value first, int64_t i) { return b.add(b.add(first, y), i * kSide); }
  mlir::Value getColumn(mlir::Value first, int64_t j) { return b.add(b.add(first, x), j * kSide); }
  Matrix dot(const SharedTile &rows, const SharedTile &columns, Tile tile, int64_t sizeK);
  void storeMatrix(const SharedTile &to, const Matrix &matrix, Tile tile);

  // Accumulators of rows: chunks of `getChunk` columns, at i * chunks + chunk.
  int64_t getChunk(int64_t columns) const;
  int64_t getChunks(int64_t columns) const { return llvm::alignTo(columns, kSide) / (kSide * getChunk(columns)); }
  Matrix getZeros(int64_t rows, int64_t columns);
  Matrix accumulate(Matrix sums, const SharedTile &weights, const SharedTile &values, Tile tile, int64_t columns);
  /// Stores row i of the block, `sums` of it, where it is in `to`.
  void storeRows(const HeadRows &to, mlir::Value first, const Matrix &sums, int64_t rows);

  // Scores.
  mlir::Value number(double value) { return b.number(f32, value); }
  mlir::Value infinity() { return number(-std::numeric_limits<double>::infinity()); }
  mlir::Value isMinusInfinity(mlir::Value v);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  mlir::Value exp(mlir::Value a);
  /// Scales and masks scores, of queries from `firstQuery` and keys from `firstKey` on; -inf where the query is none or
  /// does not see the key. Queries are the rows, or else the columns.
  void finishScores(Matrix &scores, mlir::Value batch, mlir::Value head, mlir::Value firstQuery, mlir::Value firstKey,
                    Tile tile, bool queriesAreRows);
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
  /// Place of the thread among the block's.
  mlir::Value x, y;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONTILES_H
