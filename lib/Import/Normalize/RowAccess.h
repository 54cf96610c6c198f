//===- RowAccess.h - Indexing ops as rows by number -------------*- C++ -*-===//
//
// [Note: rows by number]
// index, gather, take, index_select, and what writes where they read, differ in
// which dimensions of a tensor an index runs over, and where its own dimensions
// go. With dimensions moved they are gather_rows and scatter_rows: the table is
// [batch, rows, row], the index [batch, index], what is read or written
// [batch, index, row]. Dimensions in which an index counts 0, 1, 2, … (an arange
// over the whole dimension) are batch dimensions: there no row of another
// position is read, so that they may be sharded.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_ROWACCESS_H
#define SPMD_LIB_IMPORT_NORMALIZE_ROWACCESS_H

#include "Layouts.h"

#include <optional>

namespace spmd {

/// How one op reads or writes rows of a tensor.
struct RowAccess {
  /// Order of the tensor's dimensions in the table, and its shape there, in
  /// which several dimensions may have become the rows.
  Ints tablePermutation, tableShape;
  /// Checked, not negative; [batch, index].
  mlir::Value index;
  int64_t batchDims = 0;
  /// Order of the dimensions of what is read or written as [batch, index, row].
  Ints rowsPermutation;

  int64_t getNumRows() const { return tableShape[batchDims]; }

  mlir::Value gather(Emitter &emitter, mlir::Value self) const;
  /// `self` (zeros of shape `shape` when null) with `src` in the rows.
  mlir::Value scatter(Emitter &emitter, mlir::Value self, mlir::Value src, llvm::ArrayRef<int64_t> shape,
                      llvm::StringRef reduce) const;
  /// Adds `src` to the rows of `self`.
  mlir::Value scatterSum(Emitter &emitter, mlir::Value self, mlir::Value src) const;
};

/// gather, scatter and their like: `index` has the dimensions of what it reads,
/// and names rows of dimension `dim` of a tensor of shape `shape`. The other
/// dimensions of `index` and `shape` agree.
RowAccess getAccessAlongDim(Emitter &emitter, llvm::ArrayRef<int64_t> shape, int64_t dim, mlir::Value index,
                            llvm::StringRef use);

/// index_select and its like: whole rows of dimension `dim`, by a vector.
RowAccess getAccessOfRows(Emitter &emitter, llvm::ArrayRef<int64_t> shape, int64_t dim, mlir::Value index,
                          llvm::StringRef use);

/// take and put: elements by their number in flat order, negative from the end.
RowAccess getFlatAccess(Emitter &emitter, mlir::Value index, int64_t elements, llvm::StringRef use);

/// Python's indexing by several tensors.
struct IndexAccess {
  RowAccess rows;
  /// Of what is read or written.
  Ints shape;
  /// All index tensors count: nothing is read by number. What is read is the
  /// table, as `viewed`, `expanded`, with its dimensions in order `permutation`.
  bool isView = false;
  Ints viewed, expanded, permutation;
};
/// `indices`: null for dimensions without one; negative numbers count from the
/// end.
mlir::FailureOr<IndexAccess> getIndexAccess(Emitter &emitter, llvm::ArrayRef<int64_t> shape,
                                            llvm::ArrayRef<mlir::Value> indices, llvm::StringRef use);

/// `index`, checked at run time to lie in [low, high) or be `ignored`.
mlir::Value checkIndex(Emitter &emitter, mlir::Value index, int64_t low, int64_t high, llvm::StringRef use,
                       std::optional<int64_t> ignored = std::nullopt);
/// `condition` (i1), or an error of the step where it holds, that says `what`.
mlir::Value refuseWhere(Emitter &emitter, mlir::Value condition, const llvm::Twine &what);

/// The dimension along which `value` is 0, 1, 2, … while it is the same along
/// all others.
std::optional<int64_t> getCountingDim(mlir::Value value);

/// Zero everywhere, for certain.
bool isZero(mlir::Value value);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_ROWACCESS_H
