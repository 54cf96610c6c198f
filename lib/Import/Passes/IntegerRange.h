//===- IntegerRange.h - Between which bounds integers lie -------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H
#define SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace spmd {

/// The whole numbers from `low` to `high`, both included.
struct IntegerRange {
  int64_t low = 0, high = 0;
};

/// Bounds of computed integers, as far as the ops that compute them say: an
/// arange, a comparison, a clamp, an argmax, sums, products and quotients of
/// such.
class IntegerRanges {
public:
  /// Nothing when there are no bounds, or the value is no integer.
  std::optional<IntegerRange> get(mlir::Value value);

private:
  std::optional<IntegerRange> compute(mlir::Value value);

  llvm::DenseMap<mlir::Value, std::optional<IntegerRange>> known;
};

/// Ops whose results are elements of their operands, in whatever order.
bool keepsElements(mlir::Operation *op);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H
