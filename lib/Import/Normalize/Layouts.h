//===- Layouts.h - Slices, embeddings, masks by position --------*- C++ -*-===//
//
// The few ops that pads, diagonals, rolls and windows are made of.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_LAYOUTS_H
#define SPMD_LIB_IMPORT_NORMALIZE_LAYOUTS_H

#include "../Emitter.h"

namespace spmd {

using Ints = llvm::SmallVector<int64_t>;

/// Rows start, start + step, … below end of a dimension; `value` if all.
mlir::Value emitSlice(Emitter &emitter, mlir::Value value, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
/// Zeros of `shape` with `value` in these rows.
mlir::Value emitEmbed(Emitter &emitter, mlir::Value value, llvm::ArrayRef<int64_t> shape, int64_t dim, int64_t start,
                      int64_t end, int64_t step = 1);
/// `background` with `value` in these rows.
mlir::Value emitReplace(Emitter &emitter, mlir::Value background, mlir::Value value, int64_t dim, int64_t start,
                        int64_t end, int64_t step = 1);
mlir::Value emitCat(Emitter &emitter, llvm::ArrayRef<mlir::Value> values, int64_t dim);
mlir::Value emitFlipOf(Emitter &emitter, mlir::Value value, llvm::ArrayRef<int64_t> dims);
/// In element type `elementType`.
mlir::Value emitSum(Emitter &emitter, mlir::Value value, llvm::ArrayRef<int64_t> dims, bool keepDims,
                    mlir::Type elementType);
/// i64 0, 1, … below count.
mlir::Value emitArange(Emitter &emitter, int64_t count);
/// i64 [rows, columns]: column number less row number.
mlir::Value emitDistance(Emitter &emitter, int64_t rows, int64_t columns);
/// A tensor of one number.
mlir::Value emitNumber(Emitter &emitter, mlir::RankedTensorType type, double number);
/// A 0-dimensional zero in the element type of `type`.
mlir::Value emitZero(Emitter &emitter, mlir::RankedTensorType type);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_LAYOUTS_H
