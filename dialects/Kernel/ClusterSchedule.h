//===- ClusterSchedule.h - passes over memory of a cluster ----------*- C++ -*-===//
//
// [Note: stages of a cluster]
// The sequential dims of a cluster are a loop nest, outermost first. A value that uses the result of a reduction can
// only be computed when the loops of that reduction have ended, so the nest is run in several stages. A stage is a
// vector with one number per sequential dim: component l counts the reductions with outermost loop l that had to end
// before. Stages run in lexicographic order, those that share the first l components inside the same iteration of the
// loops 0..l-1. So a softmax over rows runs stages (0), (1), (2) for each row, and a layer norm backward that also sums
// over rows makes its row statistics and its column sums while the row is in the cache.
//
// What a stage needs from an earlier one it computes again from the operands, except reductions that are still there:
// a reduction with outermost loop l lives as long as the iteration of the loops 0..l-1 it was made in. Where it is
// needed in another, it is made again. Results are written in the first stage where they exist.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H
#define SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H

#include "dialects/Kernel/Kernel.h"
#include "llvm/ADT/SmallBitVector.h"

namespace spmd::kernel {

/// Dims along which each value of a cluster's body varies.
llvm::DenseMap<mlir::Value, llvm::SmallBitVector> getClusterVaryingDims(ClusterOp op);

/// The stages of a cluster: what each computes, when each result is written and each operand read.
class ClusterSchedule {
public:
  using Stage = llvm::SmallVector<int64_t>;

  /// One thing a stage is run for: to store a result or to feed a reduction.
  struct Root {
    mlir::Value value;
    Stage stage;
    /// The reduction fed, or null for a store (mutable because accessors of ops are not const).
    mutable ReduceOp reduce;
    /// The result stored, when `reduce` is null.
    unsigned result = 0;
    /// Dims of the cluster that must be iterated over.
    llvm::SmallBitVector dims;
  };

  explicit ClusterSchedule(ClusterOp op);

  /// Roots in a fixed order. Those of different stages are to run in the order of stages.
  llvm::ArrayRef<Root> getRoots() const { return roots; }
  /// Dims along which `value` varies; none for what is defined outside.
  const llvm::SmallBitVector &getVarying(mlir::Value value) const { return varying.find(value)->second; }
  /// Values to compute, in program order, for `value`: itself and what it is made of, down to arguments, reductions and
  /// `known`.
  llvm::SmallVector<mlir::Value> getClosure(mlir::Value value, mlir::Value known = {}) const;
  /// Whether operand `operand` is read in a stage after the one that writes result `result`.
  bool isReadAfterWrite(unsigned operand, unsigned result) const;

private:
  void addRoot(Root root);

  mutable ClusterOp op;
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> varying;
  llvm::DenseMap<mlir::Value, Stage> stages;
  llvm::SmallVector<Root> roots;
};

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_CLUSTERSCHEDULE_H
