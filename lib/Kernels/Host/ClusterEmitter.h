//===- ClusterEmitter.h - loops of one cluster ------------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H
#define SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H

#include "Emitters.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/ClusterSchedule.h"

namespace spmd::kernel {

/// Emits the loops of a cluster. EmitCluster.cpp has the loops, ClusterValues.cpp what is emitted inside them,
/// ClusterTiles.cpp the tiles for transposed operands.
class ClusterEmitter {
public:
  ClusterEmitter(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments);
  mlir::LogicalResult emit();

private:
  using Root = ClusterSchedule::Root;
  using Roots = llvm::SmallVector<const Root *>;
  using Scope = llvm::DenseMap<mlir::Value, mlir::Value>;

  // Loops.
  void emitTrips();
  void emitRange();
  void emitLevel(unsigned level, const Roots &roots);
  void emitLoop(unsigned level, const Roots &roots);
  void emitInnermost(const Roots &roots, mlir::Value low, mlir::Value high);
  bool isVectorizable(const Roots &roots) const;

  // Tiles of 16 x 16 for operands that are transposed against the results.
  std::optional<unsigned> findTiledDim();
  bool isTransposed(unsigned operand, unsigned tiledDim);
  void emitTiledTrips(unsigned tiledDim);
  void emitTiledNest(unsigned dim, unsigned tiledDim, bool inTile);
  void emitTiles(unsigned tiledDim);

  // Values.
  void emitInvariant(const Roots &roots, unsigned level);
  mlir::Value getValue(mlir::Value value, int64_t width, Scope &scope);
  mlir::Value loadOperand(unsigned i, int64_t width);
  mlir::Value loadGuarded(unsigned i, mlir::Value index);
  void storeResult(const Root &root, mlir::Value value, int64_t width);
  mlir::Value emitIndex(mlir::AffineMap map);

  // Reductions that end outside the innermost loop live on the stack.
  bool isInnermost(ReduceOp reduce) const;
  bool needsMemory(ReduceOp reduce) const;
  llvm::SmallVector<unsigned> getMemoryDims(ReduceOp reduce) const;
  mlir::Value getMemoryIndex(ReduceOp reduce);
  void clearMemory(ReduceOp reduce);
  void accumulate(ReduceOp reduce, mlir::Value value);

  unsigned innermostDim() const { return nest.back(); }

  Roots getRoots() const;
  /// Takes a flat number apart into the positions of the first `numDims` dims.
  void setPosition(mlir::Value flat, unsigned numDims);

  KernelBuilder &b;
  ClusterOp op;
  ClusterArguments arguments;
  ClusterSchedule schedule;
  llvm::ArrayRef<int64_t> dims;
  /// Dims looped over inside a trip, outermost first.
  llvm::SmallVector<unsigned> nest;
  /// Current position along each dim.
  llvm::SmallVector<mlir::Value> position;
  llvm::SmallVector<AccessMap> operandAccess, resultAccess;
  /// What is known in each open loop, as scalars.
  llvm::SmallVector<Scope> scopes;
  llvm::DenseMap<mlir::Operation *, mlir::Value> memory;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H
