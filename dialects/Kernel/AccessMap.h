//===- AccessMap.h - affine element index, taken apart --------------*- C++ -*-===//
//
// An operand's map gives one element index. Skeletons ask of it: the stride
// along a dim, the range over a box, the part that is not linear.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_KERNEL_ACCESSMAP_H
#define SPMD_DIALECTS_KERNEL_ACCESSMAP_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include <optional>

namespace spmd::kernel {

/// index = constant + sum(strides[d] * d) + sum(symbols[s] * s) + rest, where
/// `rest` holds the terms with floordiv, ceildiv or mod.
struct AccessMap {
  int64_t constant = 0;
  llvm::SmallVector<int64_t> strides;
  llvm::SmallVector<int64_t> symbols;
  llvm::SmallVector<mlir::AffineExpr> rest;

  /// Takes a map with one result apart.
  static AccessMap get(mlir::AffineMap map);

  bool isLinear() const { return rest.empty(); }
  /// Whether the index depends on dim `d` at all.
  bool uses(unsigned d) const;
  /// The stride along `d`, or nothing when `d` is also in the non-linear part.
  std::optional<int64_t> getStride(unsigned d) const;
  /// Smallest and largest index over the box, for a linear map without symbols.
  std::optional<std::pair<int64_t, int64_t>> getRange(llvm::ArrayRef<int64_t> dims) const;
  /// How many of a tensor's `elements` the map reaches in the box: at most one per point of the dims that it uses, and
  /// none outside of its range.
  int64_t countReached(llvm::ArrayRef<int64_t> dims, int64_t elements) const;
};

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_ACCESSMAP_H
