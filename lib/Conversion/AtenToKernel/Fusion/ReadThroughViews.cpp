//===- ReadThroughViews.cpp - views of light values -----------------------===//

#include "ReadThroughViews.h"

#include "../Graph/IterationSpace.h"
#include "Placement.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

/// Elements that lie side by side in what is read through a view, at least: shorter runs waste most of a cache line.
constexpr int64_t kShortestRun = 16;
/// A smaller value may as well be a tensor.
constexpr int64_t kSmallest = 128;

class ViewReader {
public:
  explicit ViewReader(Graph &graph) : graph(graph) {
    Placement placement(graph);
    for (const std::unique_ptr<Node> &node : graph.getNodes())
      ordinals.push_back(placement.getOrdinal(node.get()));
    findKept();
  }

  void run();

private:
  void findKept();
  /// Whether `node` is a scalar function that is computed at `ordinal`.
  bool isComputedAt(const Node *node, int64_t ordinal) const {
    return node->kind == NodeKind::Pointwise && !node->unit && node->getNumElements() >= kSmallest &&
           ordinals[node->id] == ordinal;
  }
  /// Whether `ref`, read at `ordinal`, can be computed where it is read instead.
  bool isComputable(const Ref &ref, int64_t ordinal) const {
    return isComputedAt(ref.node, ordinal) && !ref.guarded && ref.getNumElements() == ref.node->getNumElements() &&
           ref.layout.isPermutation();
  }
  /// What `node` reads when it is computed where a view of this layout reads it; nothing if that cannot be said.
  std::optional<SmallVector<Ref, 3>> getInputs(const Node *node, const Layout &view) const;
  /// The values that a walk has seen, and the tensors that computing them reads.
  struct Walk {
    llvm::DenseMap<const Node *, SmallVector<Layout, 1>> seen;
    llvm::SetVector<Node *> reads;
  };
  /// Adds the tensors that computing `node` there reads; false if it cannot be, or reads what is not there.
  bool collectReads(const Node *node, const Layout &view, int64_t ordinal, Walk &walk) const;
  bool isWorthwhile(const Ref &ref, int64_t ordinal) const;
  Node *compute(Node *node, const Layout &view, ArrayRef<int64_t> shape, int64_t ordinal);

  Graph &graph;
  /// By the ids of nodes, those of copies at the end.
  SmallVector<int64_t> ordinals;
  /// Values that are tensors in any case: heavy ops read them, copies, or light ops of another ordinal.
  llvm::DenseSet<const Node *> kept;
  /// New order of the nodes, copies before their readers.
  SmallVector<Node *> order;
  llvm::DenseMap<Node *, SmallVector<std::pair<Layout, Node *>, 1>> copies;
};

void ViewReader::findKept() {
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    forEachRead(node.get(), [&](Node *read) {
      if (!node->isFusible() || ordinals[node->id] != ordinals[read->id])
        kept.insert(read);
    });
}

std::optional<SmallVector<Ref, 3>> ViewReader::getInputs(const Node *node, const Layout &view) const {
  SmallVector<Ref, 3> inputs;
  for (const Ref &input : node->inputs) {
    std::optional<Layout> layout = input.layout.compose(view);
    if (!layout)
      return std::nullopt;
    inputs.push_back({input.node, *layout, input.shape, input.guarded});
    if (!isReadableAlone(node, inputs))
      return std::nullopt;
  }
  return inputs;
}

bool ViewReader::collectReads(const Node *node, const Layout &view, int64_t ordinal, Walk &walk) const {
  SmallVector<Layout, 1> &seen = walk.seen[node];
  if (llvm::is_contained(seen, view))
    return true;
  seen.push_back(view);
  auto inputs = getInputs(node, view);
  if (!inputs)
    return false;
  return llvm::all_of(*inputs, [&](const Ref &input) {
    Node *read = input.node;
    if (read->isVirtual())
      return true;
    if (isComputable(input, ordinal) && !kept.contains(read))
      return collectReads(read, input.layout, ordinal, walk);
    // A reduction of the same place is best read by its own cluster, which is one of rows.
    if (read->isLight() && !kept.contains(read))
      return false;
    walk.reads.insert(read);
    ArrayRef<Mode> modes = input.layout.getModes();
    bool isSmall = read->getNumElements() * kShortestRun <= node->getNumElements();
    return isSmall || (!modes.empty() && modes.back().stride == 1 && modes.back().size >= kShortestRun);
  });
}

bool ViewReader::isWorthwhile(const Ref &ref, int64_t ordinal) const {
  Walk walk;
  if (!isComputable(ref, ordinal) || ref.layout.isIdentity() || !collectReads(ref.node, ref.layout, ordinal, walk))
    return false;
  int64_t bytes = 0;
  for (Node *read : walk.reads)
    bytes += std::min(read->getNumBytes(), ref.node->getNumElements() * read->getNumBytes() / read->getNumElements());
  int64_t value = ref.node->getNumBytes();
  return kept.contains(ref.node) ? bytes < value : bytes < 2 * value;
}

Node *ViewReader::compute(Node *node, const Layout &view, ArrayRef<int64_t> shape, int64_t ordinal) {
  for (auto &[layout, copy] : copies[node])
    if (layout == view)
      return copy;
  Node *copy = graph.create(NodeKind::Pointwise, node->loc, node->segment);
  ordinals.push_back(ordinal);
  unsigned id = copy->id;
  *copy = *node;
  copy->id = id;
  copy->shape.assign(shape.begin(), shape.end());
  copy->shapeIsFixed = false;
  copy->inputs = *getInputs(node, view);
  for (Ref &input : copy->inputs)
    if (isComputable(input, ordinal) && !kept.contains(input.node) && !input.layout.isIdentity())
      input = {compute(input.node, input.layout, shape, ordinal), Layout::contiguous(copy->getNumElements()),
               SmallVector<int64_t>(shape), false};
  copies[node].push_back({view, copy});
  order.push_back(copy);
  return copy;
}

void ViewReader::run() {
  SmallVector<Node *> original;
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    original.push_back(node.get());
  for (Node *node : original) {
    if (node->kind == NodeKind::Pointwise && !node->unit) {
      int64_t ordinal = ordinals[node->id];
      for (Ref &input : node->inputs)
        if (isWorthwhile(input, ordinal))
          input = {compute(input.node, input.layout, input.shape, ordinal),
                   Layout::contiguous(input.getNumElements()), input.shape, false};
    }
    order.push_back(node);
  }
  graph.reorder(order);
}

} // namespace

void readThroughViews(Graph &graph) {
  ViewReader(graph).run();
  graph.removeDead();
}

} // namespace spmd::fusion
