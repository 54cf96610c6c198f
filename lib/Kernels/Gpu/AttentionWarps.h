//===- AttentionWarps.h - attention on tensor cores --------------*- C++ -*-===//
//
// [Note: attention on tensor cores]
// Where q, k, v are bf16 or f16 and their rows can be read 16 bytes at a time, products run on tensor cores
// ([Note: matrices of a warp]). A block owns a tile of rows (queries, or keys), 16 for each of its warps, and streams
// tiles of columns (keys, or queries) past it; tiles lie in shared memory as they are in memory. Two products make
// everything, as in [Note: tiles of attention on GPUs]:
//   dot         M(r, c) = sum over d of X(r, d) Y(c, d)
//   accumulate  A(r, :) += sum over c of M(r, c) Y(c, :), M rounded to the narrow type, from registers
// Sums are f32. What is streamed next is on its way to registers while the tile before is computed with.
//
// Source: Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_ATTENTIONWARPS_H
#define SPMD_LIB_KERNELS_GPU_ATTENTIONWARPS_H

#include "AttentionScores.h"
#include "WarpMatrices.h"

namespace spmd::kernel {

class AttentionWarps : protected AttentionScores {
protected:
  /// Rows of a warp; columns of a tile are a multiple of it, too.
  static constexpr int64_t kRows = 16;
  /// Elements of 16 bytes.
  static constexpr int64_t kWidth = 8;
  static constexpr double kLog2E = 1.4426950408889634;

  template <typename OpT>
  AttentionWarps(GpuBuilder &b, OpT op, const Device &device, unsigned firstMaskOperand)
      : AttentionScores(b, op, device, firstMaskOperand, kWidth), element(getElement(op)), matrices(b, element) {}

  // Sizes.
  template <typename OpT>
  static mlir::Type getElement(OpT op) {
    return mlir::cast<mlir::RankedTensorType>(op.getQ().getType()).getElementType();
  }
  static int64_t getPadded(int64_t columns) { return llvm::alignTo(columns, kRows); }
  /// Elements from one row of a shared tile to the next: an odd multiple of 16 bytes.
  static int64_t getStride(int64_t columns) { return getPadded(columns) + kWidth; }
  /// A tile for `rows` and `columns`, of `heads` heads: of 64 rows, if there are enough of them, and `most` columns.
  static Tile chooseTile(const Device &device, int64_t rows, int64_t columns, int64_t heads, int64_t most);
  /// Whether sums of so many columns leave registers for the rest.
  static bool haveRegisters(AttentionSizesAttr sizes) { return sizes.getHeadDim() <= 256 && sizes.getVDim() <= 256; }
  static int64_t getThreads(Tile tile) { return tile.rows / kRows * kWarpSize; }

  // Memory.
  /// Tiles one after the other in `arena`, from element `offset` on.
  SharedTile placeTile(mlir::Value arena, int64_t &offset, int64_t rows, int64_t columns);
  /// What each thread brings of rows [first, first + rows), `threads` together: 16 bytes each; zeros where there are
  /// none, and up to the next multiple of 16 columns.
  llvm::SmallVector<mlir::Value> loadTile(const HeadRows &from, mlir::Value first, int64_t rows, int64_t threads);
  void storeTile(const SharedTile &to, mlir::ValueRange items, int64_t rows, int64_t columns, int64_t threads);
  void fillTile(const SharedTile &to, const HeadRows &from, mlir::Value first, int64_t rows, int64_t threads) {
    storeTile(to, loadTile(from, first, rows, threads), rows, from.columns, threads);
  }
  static int64_t countItems(int64_t rows, int64_t columns, int64_t threads) {
    return llvm::divideCeil(rows * getPadded(columns) / kWidth, threads);
  }

  // Matrices: a lane's two rows of columns / 4 each.
  mlir::Value getRow(mlir::Value first, int64_t i) override { return b.add(b.add(first, firstRow()), i * 8); }
  mlir::Value getColumn(mlir::Value first, int64_t j) override {
    return b.add(b.add(first, b.mul(matrices.t, 2)), j / 2 * 8 + j % 2);
  }
  /// The lane's upper row in the block's tile, and the warp's first.
  mlir::Value firstRow() { return b.add(firstOfWarp(), matrices.g); }
  mlir::Value firstOfWarp() { return b.mul(matrices.warp, kRows); }
  Matrix getZeros(int64_t columns) { return Matrix(getPadded(columns) / 2, number(0)); }
  Matrix dot(const SharedTile &rows, const SharedTile &columns, int64_t count, int64_t sizeK);
  /// `sums`, of `columns` columns, and the product of `weights` with the rows of `values`.
  Matrix accumulate(Matrix sums, const Matrix &weights, const SharedTile &values, int64_t columns);
  /// Adds left * right to columns [8 j, 8 j + 8) of `sums`.
  void multiplyInto(Matrix &sums, int64_t j, mlir::ValueRange left, mlir::ValueRange right);
  void storeRows(const HeadRows &to, mlir::Value first, const Matrix &sums, int64_t rows);
  /// What a score is multiplied with when exp is taken rather than at once.
  double getFactor() const { return mask.isComputed() || scale <= 0 ? 1 : scale; }
  /// Masks scores, which getFactor() still has to be multiplied with.
  void finishScores(Matrix &scores, mlir::Value batch, mlir::Value head, mlir::Value firstQuery, mlir::Value firstKey,
                    Tile tile, bool queriesAreRows);
  /// [Note: large scores on GPUs]
  /// Probabilities are powers of two. exp2(fma(score, getExponentScale(), shift)) is one instruction beside the power,
  /// but the shift is rounded: by more than 1 where scores are large, so that powers that are to be 1 overflow. So a
  /// thread branches once for a tile: where a shift of its queries is large it takes the distance from the extreme
  /// first.
  double getExponentScale() const { return getFactor() * kLog2E; }
  /// Whether one of them is.
  mlir::Value isAnyLarge(mlir::ValueRange shifts);
  /// exp2, as accurate as the device's own instruction for it.
  mlir::Value exp2(mlir::Value exponent);
  mlir::Value exp2(mlir::Value score, mlir::Value shift);
  mlir::Value reduceRow(ReduceKind kind, mlir::Value value) { return b.reduceWarp(kind, value, 4); }

  mlir::Type element;
  WarpMatrices matrices;
};

/// Whether `type` and `view` of a tensor are such that tensor cores can take its rows of `columns`.
bool canBeWarpRows(mlir::Type type, ViewAttr view, int64_t columns);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONWARPS_H
