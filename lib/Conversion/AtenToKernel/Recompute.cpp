//===- Recompute.cpp - computing light values where they are used ---------===//

#include "spmd/Conversion/AtenToKernel/Recompute.h"

#include "spmd/Conversion/AtenToKernel/Placement.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

/// A smaller value is not worth an operation per element elsewhere.
constexpr int64_t kSmallestRecomputed = 128;

class Recomputer {
public:
  explicit Recomputer(Graph &graph) : graph(graph), placement(graph) { findGathers(); }

  void run();

private:
  using BytesRead = llvm::MapVector<Node *, int64_t>;

  void findGathers();
  /// The node to read at `ordinal` instead of `node`: itself, or for a view of a gathered buffer that was released
  /// before, the same view of the buffer gathered again. Null when there is none.
  Node *getReadableAt(Node *node, int64_t ordinal);
  /// Whether `node` can be computed at `ordinal` for no more bytes than its own; adds what that reads.
  bool collectReads(Node *node, int64_t ordinal, BytesRead &reads);
  bool isWorthwhile(Node *node, int64_t ordinal, BytesRead &reads);
  Node *recompute(Node *node, int64_t ordinal);
  /// What a copy was made of; other nodes themselves.
  Node *getOriginal(Node *node) const {
    auto original = originals.find(node);
    return original == originals.end() ? node : original->second;
  }

  Graph &graph;
  Placement placement;
  /// New order of the nodes, copies before their readers.
  SmallVector<Node *> order;
  llvm::DenseMap<std::pair<Node *, int64_t>, Node *> copies;
  llvm::DenseMap<Node *, Node *> originals;

  /// A parameter's view of one gathered buffer: valid from `begin` (its unpack) to before `end` (the release).
  struct Window {
    int64_t begin, end;
    Node *view;
  };
  llvm::DenseMap<Node *, StringRef> viewNames;
  llvm::StringMap<SmallVector<Window, 2>> windows;
};

void Recomputer::findGathers() {
  llvm::DenseMap<Node *, int64_t> releases;
  for (Node *anchor : placement.getAnchors())
    if (anchor->op && isa<ReleaseOp>(anchor->op))
      releases[anchor->inputs.front().node] = placement.getOrdinal(anchor);
  for (Node *anchor : placement.getAnchors()) {
    auto unpack = anchor->op ? dyn_cast<UnpackOp>(anchor->op) : UnpackOp();
    if (!unpack)
      continue;
    auto release = releases.find(anchor->inputs.front().node);
    int64_t end = release == releases.end() ? placement.getAnchors().size() : release->second;
    for (auto [name, view] : llvm::zip_equal(unpack.getNames(), anchor->results)) {
      std::string key = (unpack.getUnit() + "/" + cast<StringAttr>(name).getValue()).str();
      auto entry = windows.try_emplace(key).first;
      entry->second.push_back({placement.getOrdinal(anchor), end, view});
      viewNames[view] = entry->first();
    }
  }
}

Node *Recomputer::getReadableAt(Node *node, int64_t ordinal) {
  auto name = viewNames.find(node);
  if (name == viewNames.end())
    return node;
  for (const Window &window : windows[name->second])
    if (window.begin <= ordinal && ordinal < window.end)
      return window.view;
  return nullptr;
}

bool Recomputer::collectReads(Node *node, int64_t ordinal, BytesRead &reads) {
  auto addRead = [&](Node *read, int64_t bytes) {
    int64_t &known = reads.insert({read, 0}).first->second;
    known = std::max(known, bytes);
  };
  for (const Ref &input : node->inputs) {
    Node *read = getOriginal(input.node);
    if (read->isVirtual()) {
      // A table of a unit has a few entries, other virtual nodes read nothing.
      forEachRead(read, [&](Node *table) { addRead(table, 0); });
      continue;
    }
    BytesRead deeper;
    if (isWorthwhile(read, ordinal, deeper)) {
      for (auto [node, bytes] : deeper)
        addRead(node, bytes);
      continue;
    }
    if (!getReadableAt(read, ordinal))
      return false;
    int64_t elements = std::min(read->getNumElements(), node->getNumElements());
    int64_t elementBytes = read->getNumBytes() / read->getNumElements();
    // Row statistics and biases are noise beside the rows.
    bool isSmall = elements * 16 <= node->getNumElements();
    addRead(read, isSmall ? 0 : elements * elementBytes);
  }
  return true;
}

bool Recomputer::isWorthwhile(Node *node, int64_t ordinal, BytesRead &reads) {
  if (node->kind != NodeKind::Pointwise || placement.getOrdinal(node) >= ordinal ||
      placement.getLastAnchorUse(node) >= ordinal || node->getNumElements() < kSmallestRecomputed)
    return false;
  if (!collectReads(node, ordinal, reads))
    return false;
  int64_t bytes = 0;
  for (auto [read, size] : reads)
    bytes += size;
  return bytes <= node->getNumBytes();
}

Node *Recomputer::recompute(Node *node, int64_t ordinal) {
  if (Node *copy = copies.lookup({node, ordinal}))
    return copy;
  Node *copy = graph.create(NodeKind::Pointwise, node->loc, node->segment);
  unsigned id = copy->id;
  *copy = *node;
  copy->id = id;
  copy->shapeIsFixed = false;
  copies[{node, ordinal}] = copy;
  originals[copy] = node;
  for (Ref &input : copy->inputs) {
    Node *read = getOriginal(input.node);
    BytesRead reads;
    if (isWorthwhile(read, ordinal, reads))
      input.node = recompute(read, ordinal);
    else
      input.node = getReadableAt(read, ordinal);
  }
  order.push_back(copy);
  return copy;
}

void Recomputer::run() {
  SmallVector<Node *> original;
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    original.push_back(node.get());
  for (Node *node : original) {
    if (node->isFusible()) {
      int64_t ordinal = placement.getOrdinal(node);
      for (Ref &input : node->inputs) {
        BytesRead reads;
        if (isWorthwhile(input.node, ordinal, reads)) {
          input.node = recompute(input.node, ordinal);
          // The copy runs with its reader.
          input.node->segment = node->segment;
        }
      }
    }
    order.push_back(node);
  }
  graph.reorder(order);
}

} // namespace

void recomputeLightValues(Graph &graph) {
  Recomputer(graph).run();
  graph.removeDead();
}

} // namespace spmd::fusion
