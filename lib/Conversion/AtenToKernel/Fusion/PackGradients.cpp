//===- PackGradients.cpp - gradients of packed projections ----------------===//

#include "PackGradients.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

/// The views of the gradients of `anchor` in the result of `copy`, if it moves exactly them, each as it is stored:
/// [batch, rows, heads, columns].
static std::optional<SmallVector<kernel::ViewAttr, 3>> getPackedViews(Node *anchor, Node *copy) {
  if (anchor->gradientViews.empty() || copy->boxes.size() != anchor->results.size())
    return std::nullopt;
  SmallVector<kernel::ViewAttr, 3> views;
  for (Node *gradient : anchor->results) {
    const auto *box = llvm::find_if(copy->boxes, [&](const Piece &box) {
      const Ref &input = copy->inputs[box.input];
      return input.node == gradient && input.layout.isIdentity() &&
             input.getNumElements() == gradient->getNumElements();
    });
    if (box == copy->boxes.end())
      return std::nullopt;
    auto strides = box->to.getStrides(gradient->shape);
    if (!strides || (*strides)[3] != 1)
      return std::nullopt;
    views.push_back(kernel::ViewAttr::get(copy->elementType.getContext(), box->to.getOffset(), (*strides)[0],
                                          (*strides)[2], (*strides)[1]));
  }
  return views;
}

void packAttentionGradients(Graph &graph) {
  llvm::DenseMap<Node *, unsigned> numReaders;
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    for (const Ref &input : node->inputs)
      ++numReaders[input.node];

  for (const std::unique_ptr<Node> &node : graph.getNodes()) {
    if (node->kind != NodeKind::Copy)
      continue;
    Node *anchor = node->inputs.front().node->producer;
    if (!anchor || llvm::any_of(node->inputs, [&](const Ref &input) { return numReaders[input.node] != 1; }))
      continue;
    auto views = getPackedViews(anchor, node.get());
    if (!views)
      continue;
    // The concatenation becomes the attention's one result.
    for (Node *gradient : anchor->results)
      gradient->producer = nullptr;
    anchor->gradientViews = *views;
    anchor->results = {node.get()};
    node->kind = NodeKind::Tensor;
    node->producer = anchor;
    node->inputs.clear();
    node->boxes.clear();
  }
  graph.removeDead();
}

} // namespace spmd::fusion
