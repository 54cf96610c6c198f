//===- Clusters.h - which light nodes become one kernel ---------*- C++ -*-===//
//
// [Note: iteration spaces]
// The space of a cluster is the row-major flat index of its biggest values. Every value in the cluster has a
// *position*, a layout from that index to the value's own flat index: the identity for values of full size; the row
// number for row statistics, which are constant along rows. A node fits if all it reads from the cluster is read
// exactly at the position where it was computed. Dims only appear when the kernel is emitted: the space is cut where
// the layouts of what is read and written have their borders, and a reduced dim is never cut, so that a reduction has
// the same shape in every cluster.
//
// [Note: clusters are convex]
// Clusters are ordered by ordinal (see Placement.h) and, within one, by level: a node that reads another cluster of its
// ordinal is at least one level above it. A node joins a cluster only when everything else it reads is strictly below,
// so every path out of a cluster goes up and none comes back.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_CLUSTERS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_CLUSTERS_H

#include "../Graph/IterationSpace.h"
#include "Placement.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd::fusion {

/// Something read from outside a cluster.
struct Read {
  Node *node;
  /// From the cluster's space to the node's elements.
  Layout layout;
  bool guarded;
  bool operator==(const Read &other) const {
    return node == other.node && layout == other.layout && guarded == other.guarded;
  }
};

/// Light nodes that become one kernel.
struct Cluster {
  /// Order of creation.
  unsigned id = 0;
  int64_t ordinal = -1, level = 0;
  /// Elements of the iteration space.
  int64_t count = 1;
  llvm::SmallVector<Node *> members;
  /// Where each member's value lies in the space.
  llvm::DenseMap<Node *, Layout> positions;
  llvm::SmallVector<Read> reads;
  /// Index distances at which the space must be cut.
  llvm::SmallVector<int64_t> borders;
  /// The dims that are reduced: along rows, and (with elements inside) along columns.
  Digit row, column;
  /// The unit when the space is a rank's chunk with tables.
  ShardUnitOp unit;

  bool contains(Node *node) const { return positions.contains(node); }
};

/// All clusters of a graph in the order in which they run. With `fuse` off every light node is a cluster of its own.
/// With `fewerLaunches` sums of columns in a space of their own have their scalar functions beside them.
std::vector<std::unique_ptr<Cluster>> formClusters(const Graph &graph, const Placement &placement, bool fuse,
                                                   bool fewerLaunches);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_CLUSTERS_H
