//===- BatchSizes.h - a step captured at two batch sizes --------*- C++ -*-===//
//
// [Note: batch sizes]
// What of a step depends on the number of rows of its batch is found by comparing
// two captures of it, of B and of B' rows, op by op. A dimension of B k rows in one
// is of B' k rows in the other, or the same in both; a number is a multiple of the
// rows in both, or divided by them in both (the gradient of a mean). Whatever else
// differs refuses the step.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_BATCHSIZES_H
#define SPMD_LIB_TRANSFORMS_PARTITION_BATCHSIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd::partition {

/// A number of a step with any number of rows.
struct RowsNumber {
  enum class Kind {
    multiple,       ///< factor × rows
    inverse,        ///< factor / rows
    inverseLessOne, ///< factor / (n - 1), with n = perRow × rows: the gradient of a variance
    unbiased        ///< n / (n - 1), which makes a variance an unbiased one
  };
  Kind kind;
  double factor = 0;
  double perRow = 0;
};

/// The number of which `value` is the one at `rows` rows and `otherValue` at `otherRows`, if it is of a kind above.
std::optional<RowsNumber> findNumber(double value, double otherValue, int64_t rows, int64_t otherRows);

/// An error at `op`: that it keeps the step from serving several sizes. What is streamed says why.
class SizeRefusal {
public:
  explicit SizeRefusal(mlir::Operation *op);
  ~SizeRefusal();
  template <typename T>
  SizeRefusal &operator<<(T &&part) {
    diag << std::forward<T>(part);
    return *this;
  }
  operator mlir::LogicalResult() const { return mlir::failure(); }

private:
  mlir::InFlightDiagnostic diag;
};

class BatchSizes {
public:
  /// Compares `step` with `other`, which are of `rows` and `otherRows` rows. Fails with an error that names the first
  /// difference that has no meaning.
  static mlir::FailureOr<BatchSizes> compare(mlir::func::FuncOp step, mlir::func::FuncOp other, int64_t rows,
                                             int64_t otherRows);

  int64_t rows, otherRows;
  /// What the op of `step` computes with instead of the number that it has.
  std::optional<RowsNumber> getNumber(mlir::Operation *op) const {
    auto known = numbers.find(op);
    return known == numbers.end() ? std::nullopt : std::optional(known->second);
  }
  /// False for a value that was made after the comparison.
  bool isCaptured(mlir::Value value) const { return otherOf.contains(value); }
  /// The dimensions of a captured value whose size depends on the rows.
  llvm::SmallVector<int64_t> getDims(mlir::Value value) const;
  /// The op is about to be replaced.
  void forget(mlir::Operation *op);

private:
  BatchSizes(int64_t rows, int64_t otherRows) : rows(rows), otherRows(otherRows) {}
  mlir::LogicalResult compareValues(mlir::Operation *op, mlir::ValueRange values, mlir::ValueRange others);
  mlir::LogicalResult compareOps(mlir::Operation *op, mlir::Operation *other);
  mlir::LogicalResult compareAttribute(mlir::Operation *op, mlir::Operation *other, mlir::NamedAttribute attr,
                                       mlir::Attribute otherAttr);

  llvm::DenseMap<mlir::Value, mlir::Value> otherOf;
  llvm::DenseMap<mlir::Operation *, RowsNumber> numbers;
};

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_BATCHSIZES_H
