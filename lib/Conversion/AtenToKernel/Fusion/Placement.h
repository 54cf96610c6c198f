//===- Placement.h - between which heavy ops a light op runs ----*- C++ -*-===//
//
// [Note: ordinals]
// Anchors (GEMM, attention, row gathers, collectives) keep their order and are numbered by it. A light node gets the
// number of the last anchor it depends on, its *ordinal*, and runs right after that anchor: what depends on a
// gradient is computed, and its inputs freed, as early as possible. Nodes of backward and of the optimizer that need
// nothing of their own phase would all run at the end of the phase before, and keep their results until they are
// needed; where that holds more bytes than their inputs, they run as *late* as possible instead. So does what backward computes again.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PLACEMENT_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PLACEMENT_H

#include "../Graph/Graph.h"
#include "llvm/ADT/BitVector.h"

namespace spmd::fusion {

/// Calls `visit` with every node that `node` reads, looking through nodes that take no memory.
void forEachRead(Node *node, llvm::function_ref<void(Node *)> visit);

/// Ordinals of all nodes of a graph, by node id: an anchor's own number; -1 for what depends on no anchor.
class Placement {
public:
  explicit Placement(const Graph &graph);

  int64_t getOrdinal(const Node *node) const { return ordinals[node->id]; }
  /// Number of the last anchor that reads the node's value, -1 for none.
  int64_t getLastAnchorUse(const Node *node) const { return lastAnchorUses[node->id]; }
  llvm::ArrayRef<Node *> getAnchors() const { return anchors; }

private:
  llvm::BitVector findFree(const Graph &graph) const;
  void placeLate(const Graph &graph);

  llvm::SmallVector<int64_t> ordinals, lastAnchorUses;
  llvm::SmallVector<Node *> anchors;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PLACEMENT_H
