//===- WarpMatrices.h - products of warps on tensor cores -------*- C++ -*-===//
//
// [Note: matrices of a warp]
// `mma.sync` multiplies a 16 x 16 matrix A with a 16 x 8 matrix B, bf16 or f16, and adds to a 16 x 8 matrix of f32;
// each lane of the warp holds a fixed part, its fragment. With g = lane / 4 and t = lane % 4:
//   A   rows g and g + 8, columns 2t, 2t + 1, 2t + 8, 2t + 9: four words of two elements
//   B   rows 2t, 2t + 1, 2t + 8, 2t + 9, column g: two words
//   sum rows g and g + 8, columns 2t and 2t + 1: four f32
// So a warp's 16 rows of N columns are, in a lane, two rows of N / 4 columns. Two neighbouring blocks of eight columns
// of a sum, rounded, are the fragment of an A whose columns they are: a product's result is the next one's left operand
// without leaving the registers. `ldmatrix` brings fragments from rows in shared memory, which start at a multiple of
// 16 bytes and, for different banks, lie an odd multiple of 16 bytes apart; transposed, rows of memory are rows of B,
// else its columns.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_WARPMATRICES_H
#define SPMD_LIB_KERNELS_GPU_WARPMATRICES_H

#include "GpuBuilder.h"
#include "SharedTile.h"

namespace spmd::kernel {

/// Builds the products of one warp. Words are i32.
class WarpMatrices {
public:
  WarpMatrices(GpuBuilder &b, mlir::Type element);

  /// Number of the warp in its block, and g and t of the lane (i64).
  mlir::Value warp, g, t;

  /// The fragment of A that is rows [row, row + 16) and columns [column, column + 16) of `tile`.
  llvm::SmallVector<mlir::Value> loadLeft(const SharedTile &tile, mlir::Value row, int64_t column);
  /// The fragments of two B side by side, 16 x 16: B(k, n) is row `row` + n and column `column` + k of `tile`, or, if
  /// it `isTransposed`, row `row` + k and column `column` + n.
  llvm::SmallVector<mlir::Value> loadRight(const SharedTile &tile, int64_t row, int64_t column, bool isTransposed);
  /// `sum` + left * right.
  llvm::SmallVector<mlir::Value> multiply(mlir::ValueRange left, mlir::ValueRange right, mlir::ValueRange sum);
  /// Two f32, rounded, as a word.
  mlir::Value pack(mlir::Value low, mlir::Value high);

private:
  llvm::SmallVector<mlir::Value> load(const SharedTile &tile, mlir::Value at, bool isTransposed);

  GpuBuilder &b;
  mlir::Type element;
  mlir::Value lane;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_WARPMATRICES_H
