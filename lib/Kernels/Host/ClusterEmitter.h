//===- ClusterEmitter.h - loops of one cluster ------------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H
#define SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H

#include "../ClusterValues.h"
#include "Emitters.h"

namespace spmd::kernel {

/// Emits the loops of a cluster. EmitCluster.cpp has the loops, ClusterReductions.cpp the sums kept on the stack,
/// ClusterMemory.cpp prefetches and non-temporal stores, ClusterTraffic.cpp what that moves,
/// ClusterRowsInFlight.cpp rows at a time, ClusterTiles.cpp the tiles for transposed operands.
class ClusterEmitter : private ClusterValues {
public:
  ClusterEmitter(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments);
  mlir::LogicalResult emit();

private:
  // Loops.
  void emitIterations();
  void emitRange();
  void emitLevel(unsigned level, const Roots &roots);
  void emitLoop(unsigned level, const Roots &roots);
  void emitInnermost(const Roots &roots, mlir::Value low, mlir::Value high);
  mlir::Value findOnlyPlace(const Root &root) const;
  void emitOnlyElement(const Root &root, mlir::Value place);
  bool hasFunctions(const Roots &roots) const;
  bool isVectorizable(const Roots &roots) const;

  // Memory.
  bool isInFirstPass(const Root &root) const;
  bool isReadByRows(unsigned operand) const;
  int64_t getRowBytes() const;
  int64_t countRowsAhead(const Roots &roots) const;
  void prefetch(const Roots &roots, int64_t width);
  void prefetchOperand(unsigned operand, int64_t ahead, int64_t width, int64_t cache);
  void prefetchRows(int64_t rows, int64_t width);
  void prefetchAhead(int64_t width);
  bool mayPassCaches(const Root &root) const;
  void emitPastCaches(llvm::function_ref<void()> emitLoops);
  void storeAt(unsigned result, mlir::Value value, mlir::Value index, int64_t alignment) override;

  // Bytes that are moved more than once.
  void countMoved();
  int64_t getFootprint(unsigned first) const;
  bool exceedsCache(unsigned first) const { return getFootprint(first) > b.getCacheBytes(); }
  int64_t countReturns(llvm::function_ref<bool(unsigned)> used) const;
  int64_t countLaterPasses(unsigned operand) const;
  unsigned getOutermostLoop(const ClusterSchedule::Stage &a, const ClusterSchedule::Stage &b) const;

  // Several rows at a time, each in another pass.
  struct Pass {
    Roots roots;
    llvm::SmallVector<ReduceOp> reductions;
  };
  struct Row;
  llvm::SmallVector<Pass> findPasses() const;
  void emitRowsInFlight(llvm::ArrayRef<Pass> passes);
  Row openRow(mlir::Value iteration, llvm::ArrayRef<Pass> before, mlir::ValueRange sums);
  void atRow(Row &row, llvm::function_ref<void()> body);
  void emitPasses(llvm::ArrayRef<Pass> passes, llvm::MutableArrayRef<Row> flying);

  // Tiles of 16 x 16 for operands that are transposed against the results.
  struct TileBlock {
    int64_t tiled, inner;
  };
  std::optional<unsigned> findTiledDim();
  TileBlock getTileBlock(unsigned tiledDim) const;
  bool isTransposed(unsigned operand, unsigned tiledDim);
  void emitTiledIterations(unsigned tiledDim);
  void emitTiledNest(unsigned dim, unsigned tiledDim, int64_t tiled);
  void emitTiles(unsigned tiledDim, int64_t positions);

  /// Emits, before the loop of nest level `level`, what that loop and those inside it do not change.
  void emitInvariantBefore(unsigned level, const Roots &roots);

  // A value that is computed for a reduction and again for a result waits in the result's memory.
  void findKept();
  bool mayKeep(mlir::Value value, const Root &store, const ClusterSchedule::Stage &stage);
  bool isKeeping(const Roots &roots) const { return kept && roots.front()->stage == keptStage; }
  bool isAfterKept(const Root &root) const { return kept && keptStage < root.stage && !(keptUntil < root.stage); }
  mlir::Value loadKept(mlir::Value value, int64_t width) override;

  // Reductions that end outside the innermost loop live on the stack.
  mlir::Value loadReduction(ReduceOp reduce, int64_t width) override;
  bool isInnermost(ReduceOp reduce) const;
  bool needsMemory(ReduceOp reduce) const;
  void clearMemory(ReduceOp reduce);
  void accumulate(ReduceOp reduce, mlir::Value value);

  unsigned innermostDim() const { return nest.back(); }

  /// Takes a flat number apart into the positions of the first `numDims` dims.
  void setPosition(mlir::Value flat, unsigned numDims);

  KernelBuilder &b;
  ClusterArguments arguments;
  llvm::DenseMap<mlir::Operation *, mlir::Value> memory;
  /// The results whose vectors are written by non-temporal stores in the loops that are being emitted.
  llvm::SmallBitVector pastCaches;
  /// The value that waits, in which result's memory, the stage that computes it and the one that overwrites it;
  /// `readsKept` in between.
  mlir::Value kept;
  unsigned keptResult = 0;
  ClusterSchedule::Stage keptStage, keptUntil;
  bool readsKept = false;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_CLUSTEREMITTER_H
