//===- Placement.cpp - between which heavy ops a light op runs ------------===//
//
// [Note: an example of ordinals] Of forward and backward of gelu between GEMMs,
//
//     %h = mm %x, %w1             anchor 0
//     %a = gelu %h                ordinal 0: right behind %h
//     %y = mm %a, %w2             anchor 1
//     // backward
//     %da = mm %dy, %w2           anchor 2
//     %s = gelu' %h               ordinal 0 by what it reads, 2 by what reads it
//     %dh = mul %da, %s           ordinal 2
//
// %s belongs to backward, whose first anchor is 2, and needs nothing of it. At ordinal 0 it would be kept until %dh
// reads it. What it reads itself, %h, has no more bytes: so %h is kept instead, and %s runs at the ordinal of its first
// reader, where both are one kernel and %s is never in memory. What is computed from arguments alone can always wait:
// they are there anyway. So the mask of a microbatch's labels, and how many of them count, are of its iteration, and
// not before those that come before it.
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;

namespace spmd::fusion {

void forEachRead(Node *node, llvm::function_ref<void(Node *)> visit) {
  for (const Ref &input : node->inputs) {
    if (input.node->isVirtual())
      forEachRead(input.node, visit);
    else
      visit(input.node);
  }
}

Placement::Placement(const Graph &graph) {
  ordinals.assign(graph.getNodes().size(), -1);
  lastAnchorUses.assign(graph.getNodes().size(), -1);
  for (const std::unique_ptr<Node> &node : graph.getNodes()) {
    int64_t &ordinal = ordinals[node->id];
    if (node->kind == NodeKind::Anchor) {
      ordinal = anchors.size();
      anchors.push_back(node.get());
      forEachRead(node.get(), [&](Node *read) { lastAnchorUses[read->id] = ordinal; });
    } else if (node->kind == NodeKind::Tensor) {
      ordinal = node->producer ? ordinals[node->producer->id] : -1;
    } else {
      ordinal = node->earliestOrdinal;
      forEachRead(node.get(), [&](Node *read) { ordinal = std::max(ordinal, ordinals[read->id]); });
    }
  }
  placeLate(graph);
}

static bool isArgument(const Node *node) { return node->kind == NodeKind::Tensor && !node->producer; }

/// By node, whether it is an argument, or light, for light nodes only, and computed from such alone.
llvm::BitVector Placement::findFree(const Graph &graph) const {
  llvm::BitVector isFree(graph.getNodes().size());
  for (const std::unique_ptr<Node> &node : graph.getNodes()) {
    bool isIt = isArgument(node.get()) || (node->isLight() && lastAnchorUses[node->id] < 0);
    forEachRead(node.get(), [&](Node *read) { isIt &= isFree[read->id]; });
    isFree[node->id] = isIt;
  }
  return isFree;
}

/// Whether waiting frees at least as many bytes as it holds: then a node's result is bigger than what it reads, but for
/// what is there anyway.
static bool isSmallerBefore(Node *node, llvm::function_ref<bool(Node *)> isThere) {
  int64_t bytes = 0;
  forEachRead(node, [&](Node *read) { bytes += isThere(read) ? 0 : read->getNumBytes(); });
  return bytes <= node->getNumBytes();
}

void Placement::placeLate(const Graph &graph) {
  // The first anchor of each segment: a node of the segment placed before it needs nothing of its own phase.
  llvm::DenseMap<int64_t, int64_t> firstAnchors;
  for (auto [ordinal, anchor] : llvm::enumerate(anchors))
    firstAnchors.try_emplace(anchor->segment, ordinal);

  llvm::BitVector isFree = findFree(graph), waits(graph.getNodes().size());
  constexpr int64_t kNoUse = std::numeric_limits<int64_t>::max();
  SmallVector<int64_t> firstUses(graph.getNodes().size(), kNoUse);
  for (const std::unique_ptr<Node> &node : llvm::reverse(graph.getNodes())) {
    int64_t &ordinal = ordinals[node->id];
    auto first = firstAnchors.find(node->segment);
    bool isEarly = first != firstAnchors.end() && ordinal < first->second;
    int64_t firstUse = firstUses[node->id];
    if (node->isLight() && node->isLate && firstUse != kNoUse) {
      ordinal = std::max(ordinal, firstUse);
    } else if (node->isLight() && isEarly && firstUse != kNoUse) {
      if (isSmallerBefore(node.get(), isArgument)) {
        ordinal = std::max(ordinal, firstUse);
      } else if (first->second > 0 && isSmallerBefore(node.get(), [&](Node *read) { return isFree[read->id]; })) {
        // Not of the first phase: before it there is nothing that could be kept meanwhile.
        ordinal = std::max(ordinal, firstUse);
        waits.set(node->id);
      }
    }
    // An anchor needs its operands before it, a light node beside it.
    int64_t needed = node->kind == NodeKind::Anchor ? ordinal - 1 : ordinal;
    forEachRead(node.get(), [&](Node *read) { firstUses[read->id] = std::min(firstUses[read->id], needed); });
  }

  // What has waited, and is smaller than what it reads, is computed beside that: the mask of labels and their number
  // are one kernel.
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    if (waits[node->id]) {
      int64_t beside = node->earliestOrdinal;
      forEachRead(node.get(), [&](Node *read) { beside = std::max(beside, ordinals[read->id]); });
      ordinals[node->id] = beside;
    }
}

} // namespace spmd::fusion
