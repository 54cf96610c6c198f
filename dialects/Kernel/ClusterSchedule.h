//===- ClusterSchedule.h - passes over memory of a cluster ----------*- C++ -*-===//
//
// [Note: stages of a cluster]
// The sequential dims of a cluster are a loop nest, outermost first. A value
// that uses the result of a reduction can only be computed when the loops of
// that reduction have ended, so the loop body is run in several stages. A stage
// is a vector with one number per sequential dim: component l counts how many
// reductions whose outermost loop is l had to end before, and a reduction that
// ends sets the deeper components back to zero. Stages run in lexicographic
// order, those that share the first l components inside the same iteration of
// the loops 0..l-1. So a softmax over rows runs stages (0), (1), (2) for each
// row, and a layer norm backward that also sums over rows runs its row
// statistics and its column sums while the row is in the cache.
//
// What a stage needs from an earlier one it computes again from the operands,
// except reductions. Results are written in the first stage where they exist.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H
#define SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H

#include "dialects/Kernel/Kernel.h"
#include "llvm/ADT/SmallBitVector.h"

namespace spmd::kernel {

/// Dims along which each value of a cluster's body varies.
llvm::DenseMap<mlir::Value, llvm::SmallBitVector> getClusterVaryingDims(ClusterOp op);

/// The stages of a cluster: when each value exists, when each result is written
/// and each operand read.
class ClusterSchedule {
public:
  using Stage = llvm::SmallVector<int64_t>;

  explicit ClusterSchedule(ClusterOp op);

  /// First stage in which a value of the body exists.
  const Stage &getStage(mlir::Value value) const;
  /// Values to compute, in program order, for `value` to be there in a stage
  /// where reductions before it have ended: itself and what it is made of, down
  /// to arguments and reductions.
  llvm::SmallVector<mlir::Value> getClosure(mlir::Value value) const;
  /// Whether operand `operand` is read in a stage after the one that writes
  /// result `result`.
  bool isReadAfterWrite(unsigned operand, unsigned result) const;

private:
  mutable ClusterOp op;
  llvm::DenseMap<mlir::Value, Stage> stages;
};

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H
