//===- KnownIntegers.h - Whole numbers that depend on nothing ---*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H
#define SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace spmd {

/// Elements of tensors of whole numbers that are made of positions and constants alone, in flat order. Stairs, which
/// most of them are, cost the same for any number of elements.
class KnownIntegers {
public:
  /// Element i is `start` + `step` floor(i / `repeats`). A constant has the step 0.
  struct Stairs {
    int64_t start = 0, step = 0, repeats = 1;
  };
  /// Stairs, or single numbers if `numbers` holds any. A single number is a constant.
  struct Integers {
    int64_t count = 0;
    Stairs stairs;
    std::vector<int64_t> numbers;

    bool areStairs() const { return numbers.empty(); }
    bool isConstant() const { return areStairs() && stairs.step == 0; }
    int64_t operator[](int64_t i) const {
      return areStairs() ? stairs.start + stairs.step * (i / stairs.repeats) : numbers[i];
    }
  };

  /// Null where the value depends on anything else, or on an op that is not among those of row numbers.
  const Integers *get(mlir::Value value);

  /// The number k of times that each of `rows` numbers stands there, one after the other: 0, 0, 1, 1, ... (k = 1: they
  /// count); nothing for other numbers.
  std::optional<int64_t> getRepeats(mlir::Value value, int64_t rows);
  /// 0, 1, 2, ... to the last one.
  bool isCounting(mlir::Value value);

private:
  std::optional<Integers> compute(mlir::Value value);

  llvm::DenseMap<mlir::Value, std::optional<Integers>> known;
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_PASSES_KNOWNINTEGERS_H
