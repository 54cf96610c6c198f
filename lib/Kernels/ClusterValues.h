//===- ClusterValues.h - values at a place of a cluster ---------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_CLUSTERVALUES_H
#define SPMD_LIB_KERNELS_CLUSTERVALUES_H

#include "CodeBuilder.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/ClusterSchedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace spmd::kernel {

/// Emits the values of a cluster's body where loops have brought it: the same for all targets. The loops, and where
/// reductions are kept, are the skeleton's.
class ClusterValues {
public:
  virtual ~ClusterValues() = default;

protected:
  using Root = ClusterSchedule::Root;
  using Roots = llvm::SmallVector<const Root *>;
  using Scope = llvm::DenseMap<mlir::Value, mlir::Value>;

  ClusterValues(CodeBuilder &b, ClusterOp op, llvm::ArrayRef<mlir::Value> operands,
                llvm::ArrayRef<mlir::Value> results);

  /// The result of a reduction that no scope holds.
  virtual mlir::Value loadReduction(ReduceOp reduce, int64_t width) = 0;
  /// `value`, if the skeleton has put it into memory, else null.
  virtual mlir::Value loadKept(mlir::Value value, int64_t width) { return {}; }
  /// Stores `value`, one element or several side by side, at `index` of a result.
  virtual void storeAt(unsigned result, mlir::Value value, mlir::Value index, int64_t alignment);
  /// Bytes that `width` elements side by side, read or written through `map`, are aligned to; 0: those of one element.
  virtual int64_t getAlignment(mlir::AffineMap map, mlir::Type element, int64_t width) { return 0; }

  Roots getRoots() const;
  /// Emits into the innermost scope what `roots` need and no dim of `changing` changes.
  void emitInvariant(const Roots &roots, const llvm::SmallBitVector &changing, int64_t width = 1);
  /// `value` at the current position: known already, or emitted and kept in `scope`. Above 1, `width` is the number of
  /// positions side by side along the lane dim; what does not vary along it stays a scalar.
  mlir::Value getValue(mlir::Value value, int64_t width, Scope &scope);
  void storeResult(unsigned result, mlir::Value value, int64_t width);
  void storeResult(const Root &root, mlir::Value value, int64_t width) { storeResult(root.result, value, width); }
  /// Index of `map` at the current position; dims that are not open are not used by what is asked for.
  mlir::Value emitIndex(mlir::AffineMap map);

  // A reduction that does not end in the innermost loop has one result per position of some dims of the nest.
  /// Nest dims inside the outermost loop of `reduce` along which its result varies.
  llvm::SmallVector<unsigned> getMemoryDims(ReduceOp reduce) const;
  /// Results of `reduce` at a time, and the number of that at the current position.
  int64_t getMemoryCount(ReduceOp reduce) const;
  mlir::Value getMemoryIndex(ReduceOp reduce);
  /// Combines `value` with what `pointer` holds for `reduce` at the current position, aligned to `alignment` bytes (0:
  /// to one element).
  void combineInMemory(ReduceOp reduce, mlir::Value pointer, mlir::Value value, int64_t alignment = 0);

  CodeBuilder &b;
  mutable ClusterOp op; // accessors of ops are not const
  llvm::SmallVector<mlir::Value> operands, results;
  ClusterSchedule schedule;
  llvm::ArrayRef<int64_t> dims;
  /// Dims looped over inside an iteration, outermost first.
  llvm::SmallVector<unsigned> nest;
  /// The dim along which wide values have their lanes.
  std::optional<unsigned> laneDim;
  /// Current position along each dim; null where no loop is open.
  llvm::SmallVector<mlir::Value> position;
  llvm::SmallVector<AccessMap> operandAccess, resultAccess;
  /// What is known in each open loop, as scalars.
  llvm::SmallVector<Scope> scopes;

  /// Whether `value` is the position along the lanes' dim.
  bool isLaneNumber(mlir::Value value, int64_t width) const;

private:
  mlir::Value emitLaneCompare(mlir::arith::CmpIOp compare, int64_t width, Scope &scope);
  mlir::Value loadOperand(unsigned i, int64_t width);
  mlir::Value loadGuarded(unsigned i, mlir::Value index);
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_CLUSTERVALUES_H
