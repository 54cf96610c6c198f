//===- RowLayout.h - How a collective cuts rows into chunks -----*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_ROWLAYOUT_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_ROWLAYOUT_H

#include "dialects/Spmd/Spmd.h"

namespace spmd {

/// Rows of a whole value seen as [outer][total][inner], cut over ranks in chunks; a chunk is [outer][chunk][inner]. Of a
/// collective of rows, what it sends, receives, or both.
struct RowLayout {
  int64_t outer = 1, total, chunk, inner = 1, ranks;

  explicit RowLayout(RowCollectiveOpInterface op);

  bool isFlat() const { return outer == 1 && total == chunk * ranks; }
  /// The rows of a rank that there are; the last ranks may have fewer than a chunk, or none.
  int64_t getRows(int64_t rank) const { return std::clamp<int64_t>(total - rank * chunk, 0, chunk); }
  /// The chunks of all ranks, one after the other.
  mlir::RankedTensorType getChunksType() const { return chunks; }

  /// Maps points [outer][rows][inner] to elements of the whole tensor.
  mlir::AffineMap getWholeMap(mlir::MLIRContext *context, int64_t rank) const {
    return getMap(context, total, rank * chunk, 0);
  }
  /// Maps points to elements of the chunks laid one after the other, from row `first` of the rank's chunk on.
  mlir::AffineMap getChunksMap(mlir::MLIRContext *context, int64_t rank, int64_t first) const {
    return getMap(context, chunk, first, rank * outer * chunk * inner);
  }

private:
  mlir::AffineMap getMap(mlir::MLIRContext *context, int64_t rows, int64_t first, int64_t offset) const;

  mlir::RankedTensorType chunks;
};

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_ROWLAYOUT_H
