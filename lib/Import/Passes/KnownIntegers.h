//===- KnownIntegers.h - Whole numbers that depend on nothing ---*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H
#define SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace spmd {

/// Elements of tensors of whole numbers that are made of positions and constants alone, in flat order.
class KnownIntegers {
public:
  using Numbers = std::vector<int64_t>;

  /// Null where the value depends on anything else, or on an op that is not among those of row numbers.
  const Numbers *get(mlir::Value value);

  /// The number k of times that each of `rows` numbers stands there, one after the other: 0, 0, 1, 1, ... (k = 1: they
  /// count); nothing for other numbers.
  std::optional<int64_t> getRepeats(mlir::Value value, int64_t rows);
  /// 0, 1, 2, ... to the last one.
  bool isCounting(mlir::Value value);

private:
  std::optional<Numbers> compute(mlir::Value value);

  llvm::DenseMap<mlir::Value, std::optional<Numbers>> known;
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H
