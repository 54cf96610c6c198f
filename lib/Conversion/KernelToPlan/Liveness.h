//===- Liveness.h - Until when a value can be read --------------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_LIVENESS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_LIVENESS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd {

/// Positions of the ops of a block, and when their operands are read for the last time.
class Liveness {
public:
  explicit Liveness(mlir::Block &block);

  int64_t getPosition(mlir::Operation *op) const { return positions.at(op); }
  /// When `user` has read its operands: a started collective reads them until its wait.
  int64_t getEndOfUse(mlir::Operation *user) const;
  /// True if no op but `op` reads `value` at or after `op`. A `spmd.release` reads nothing.
  bool isDeadAfter(mlir::Value value, mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  int64_t end = 0;
};

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_LIVENESS_H
