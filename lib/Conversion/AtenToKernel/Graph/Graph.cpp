//===- Graph.cpp - a step as scalar functions and heavy ops ---------------===//

#include "Graph.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

Type Ref::getElementType() const { return node->elementType; }

int64_t Node::getNumBytes() const {
  int64_t bits = elementType.getIntOrFloatBitWidth();
  return getNumElements() * std::max<int64_t>(1, bits / 8);
}

Node *Graph::create(NodeKind kind, Location loc, int64_t segment) {
  nodes.push_back(std::make_unique<Node>(kind, nodes.size(), loc));
  nodes.back()->segment = segment;
  return nodes.back().get();
}

void Graph::reorder(ArrayRef<Node *> order) {
  std::vector<std::unique_ptr<Node>> sorted;
  for (Node *node : order) {
    std::unique_ptr<Node> &slot = nodes[node->id];
    sorted.push_back(std::move(slot));
  }
  nodes = std::move(sorted);
  for (auto [id, node] : llvm::enumerate(nodes))
    node->id = id;
}

void Graph::removeDead() {
  llvm::DenseSet<Node *> live;
  SmallVector<Node *> order;
  for (const std::unique_ptr<Node> &node : llvm::reverse(nodes)) {
    bool kept = node->kind == NodeKind::Anchor || live.contains(node.get()) ||
                (node->kind == NodeKind::Tensor && (node->producer || node->value));
    if (!kept)
      continue;
    order.push_back(node.get());
    for (const Ref &input : node->inputs)
      live.insert(input.node);
  }
  std::reverse(order.begin(), order.end());
  reorder(order);
}

} // namespace spmd::fusion
