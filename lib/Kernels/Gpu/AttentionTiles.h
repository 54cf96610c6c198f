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

#include "AttentionScores.h"

namespace spmd::kernel {

/// What the blocks of attention, forward and backward, share.
class AttentionTiles : protected AttentionScores {
protected:
  /// Threads along the rows and the columns of a tile.
  static constexpr int64_t kSide = 16;
  static constexpr int64_t kThreads = kSide * kSide;
  /// Elements read at a time along d.
  static constexpr int64_t kWidth = 4;

  template <typename OpT>
  AttentionTiles(GpuBuilder &b, OpT op, const Device &device, unsigned firstMaskOperand)
      : AttentionScores(b, op, device, firstMaskOperand, kWidth) {
    y = b.floorDiv(b.getThread(), kSide);
    x = b.mod(b.getThread(), kSide);
  }

  // Sizes.
  /// Words from one row of a shared tile to the next.
  static int64_t getStride(int64_t columns) { return llvm::alignTo(columns, kSide) + kWidth; }
  /// Rows and columns of the block's tile: as large as the work and the SMs allow, as `sums` (what each row sums up)
  /// leaves registers, and as `getFloats` says they fit into shared memory: that of an SM twice, if the tile need not
  /// be tiny for that, else that of a block. Fails with an error on `op` if none fits.
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
  bool fitTwice(int64_t floats) const { return device.getBlocksPerSM(kThreads, floats * getStoredBytes(f32)) >= 2; }

  // Memory.
  /// Copies rows [first, first + rows) to `to`, all threads together; zeros where there are none, and up to the next
  /// multiple of 16 columns.
  void fillTile(const SharedTile &to, const HeadRows &from, mlir::Value first, int64_t rows);
  /// Tiles one after the other in `arena`, from element `offset` on.
  SharedTile placeTile(mlir::Value arena, int64_t &offset, int64_t rows, int64_t columns);

  mlir::Value getRow(mlir::Value first, int64_t i) override { return b.add(b.add(first, y), i * kSide); }
  mlir::Value getColumn(mlir::Value first, int64_t j) override { return b.add(b.add(first, x), j * kSide); }
  Matrix dot(const SharedTile &rows, const SharedTile &columns, Tile tile, int64_t sizeK);
  void storeMatrix(const SharedTile &to, const Matrix &matrix, Tile tile);

  // Accumulators of rows: chunks of `getChunk` columns, at i * chunks + chunk.
  int64_t getChunk(int64_t columns) const;
  int64_t getChunks(int64_t columns) const { return llvm::alignTo(columns, kSide) / (kSide * getChunk(columns)); }
  Matrix getZeros(int64_t rows, int64_t columns);
  Matrix accumulate(Matrix sums, const SharedTile &weights, const SharedTile &values, Tile tile, int64_t columns);
  /// Stores row i of the block, `sums` of it, where it is in `to`.
  void storeRows(const HeadRows &to, mlir::Value first, const Matrix &sums, int64_t rows);

  mlir::Value exp(mlir::Value a);

  /// Place of the thread among the block's.
  mlir::Value x, y;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONTILES_H
