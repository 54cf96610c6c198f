//===- Emitter.h - kernel ops from a clustered graph ------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EMITTER_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EMITTER_H

#include "Clusters.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace spmd::fusion {

/// Writes the kernels of a graph into a function: anchors in their order, after each the clusters of its ordinal.
class Emitter {
public:
  Emitter(mlir::func::FuncOp func, const Graph &graph, const Placement &placement,
          mlir::ArrayRef<std::unique_ptr<Cluster>> clusters);

  /// Emits all kernels before the function's terminator; ops that anchors keep are moved there. The ops that were
  /// lowered are left where they are.
  void run();

private:
  void findEscapingNodes(const Graph &graph);
  void delayReleases();
  void emitAnchor(Node *anchor);
  void emitCluster(const Cluster &cluster);
  void emitFused(const Cluster &cluster);
  void emitChunk(const Cluster &cluster);
  void emitSegmentReduce(const Cluster &cluster);
  void emitCopy(const Cluster &cluster);
  /// Binds the results of a cluster's kernel and gives it location and segment.
  void finish(const Cluster &cluster, mlir::Operation *kernel, mlir::ArrayRef<Node *> outputs);
  mlir::Location getLocation(const Cluster &cluster);
  llvm::SmallVector<Node *> getOutputs(const Cluster &cluster);

  mlir::func::FuncOp func;
  const Placement &placement;
  mlir::ArrayRef<std::unique_ptr<Cluster>> clusters;
  mlir::OpBuilder builder;
  llvm::DenseMap<Node *, mlir::Value> values;
  /// Nodes that somebody outside their cluster reads.
  llvm::DenseSet<Node *> escaping;
  /// Releases whose buffer is read later than they stand, by the ordinal after which they go.
  llvm::DenseMap<int64_t, llvm::SmallVector<Node *, 1>> delayed;
  llvm::DenseSet<Node *> delayedReleases;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EMITTER_H
