//===- ReadNarrow.cpp - widened values are read narrow --------------------===//

#include "ReadNarrow.h"

#include "../Graph/IterationSpace.h"
#include "../Graph/ScalarBodies.h"
#include "GatheredViews.h"

using namespace mlir;

namespace spmd::fusion {

/// A bigger value is widened by the kernel that reads it first, or is no more to read than the narrow one.
static bool isSmall(const Node *node, int64_t elements) { return node->getNumElements() * 16 <= elements; }

/// What can be read at `ordinal` instead of the widened `ref`, or nothing.
static std::optional<Ref> getNarrow(const Ref &ref, int64_t ordinal, const Placement &placement,
                                    const GatheredViews &gathered) {
  const Ref &source = ref.node->inputs.front();
  bool isThere = !source.node->isLight() || placement.getOrdinal(source.node) < ordinal;
  Node *readable = isThere && !source.node->isVirtual() ? gathered.getReadableAt(source.node, ordinal) : nullptr;
  std::optional<Layout> layout = source.layout.compose(ref.layout);
  if (!readable || !layout || source.guarded)
    return std::nullopt;
  return Ref{readable, *layout, ref.shape, ref.guarded};
}

void readNarrow(Graph &graph) {
  Placement placement(graph);
  GatheredViews gathered(placement);
  for (const std::unique_ptr<Node> &node : graph.getNodes()) {
    if (node->kind != NodeKind::Pointwise || node->unit)
      continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Node *wide = node->inputs[i].node;
      if (!wide->widens || !isSmall(wide, node->getNumElements()))
        continue;
      std::optional<Ref> narrow = getNarrow(node->inputs[i], placement.getOrdinal(node.get()), placement, gathered);
      if (!narrow)
        continue;
      SmallVector<Ref, 3> inputs = node->inputs;
      inputs[i] = *narrow;
      if (!isReadableAlone(node.get(), inputs))
        continue;
      node->inputs = std::move(inputs);
      node->body = [body = std::move(node->body), i, type = wide->elementType](ImplicitLocOpBuilder &b,
                                                                               ValueRange args) {
        SmallVector<Value> widened(args);
        widened[i] = castScalar(b, args[i], type);
        return body(b, widened);
      };
    }
  }
  graph.removeDead();
}

} // namespace spmd::fusion
