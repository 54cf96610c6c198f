//===- Recompute.cpp - computing light values where they are used ---------===//

#include "Recompute.h"

#include "GatheredViews.h"
#include "Placement.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;

namespace spmd::fusion {

namespace {

/// A smaller value is not worth an operation per element elsewhere.
constexpr int64_t kSmallestRecomputed = 128;

/// Bytes read per tensor.
using BytesRead = llvm::MapVector<Node *, int64_t>;

void addRead(BytesRead &reads, Node *node, int64_t bytes) {
  int64_t &known = reads.insert({node, 0}).first->second;
  known = std::max(known, bytes);
}

int64_t countBytes(const BytesRead &reads) {
  int64_t total = 0;
  for (auto [node, bytes] : reads)
    total += bytes;
  return total;
}

/// Row statistics and biases are noise beside the rows.
bool isSmall(Node *node, int64_t elements) { return node->getNumElements() * 16 <= elements; }

class Recomputer {
public:
  explicit Recomputer(Graph &graph) : graph(graph), placement(graph), gathered(placement) {}

  void run();

private:
  /// Whether `node` may be computed at `ordinal`: a scalar function that ran before and is not there anyway.
  bool isRecomputable(Node *node, int64_t ordinal);
  /// What computing `node` at `ordinal` reads, when `elements` values are computed; nothing when that is not there, or
  /// more than `node` itself.
  const std::optional<BytesRead> &findReads(Node *node, int64_t ordinal, int64_t elements);
  std::optional<BytesRead> collectReads(Node *node, int64_t ordinal, int64_t elements);
  /// The least bytes, beside `reads`, of reading or computing `node`.
  int64_t countLeast(Node *node, int64_t ordinal, int64_t elements, const BytesRead &reads);
  /// Whether computing `node` at `ordinal` reads no more bytes than reading it.
  bool isWorthwhile(Node *node, int64_t ordinal, int64_t elements);
  Node *recompute(Node *node, int64_t ordinal);
  /// What a copy was made of; other nodes themselves.
  Node *getOriginal(Node *node) const {
    auto original = originals.find(node);
    return original == originals.end() ? node : original->second;
  }

  Graph &graph;
  Placement placement;
  GatheredViews gathered;
  /// New order of the nodes, copies before their readers.
  SmallVector<Node *> order;
  llvm::DenseMap<std::pair<Node *, int64_t>, Node *> copies;
  llvm::DenseMap<Node *, Node *> originals;
  /// What findReads has found: many ways may lead to one node.
  std::map<std::tuple<Node *, int64_t, int64_t>, std::optional<BytesRead>> found;
};

const std::optional<BytesRead> &Recomputer::findReads(Node *node, int64_t ordinal, int64_t elements) {
  std::tuple<Node *, int64_t, int64_t> key(node, ordinal, elements);
  auto known = found.find(key);
  if (known == found.end())
    known = found.emplace(key, collectReads(node, ordinal, elements)).first;
  return known->second;
}

static int64_t countRead(Node *node, int64_t elements) {
  int64_t elementBytes = node->getNumBytes() / node->getNumElements();
  return std::min(node->getNumElements(), elements) * elementBytes;
}

int64_t Recomputer::countLeast(Node *node, int64_t ordinal, int64_t elements, const BytesRead &reads) {
  BytesRead more;
  for (const Ref &input : node->inputs) {
    Node *read = getOriginal(input.node);
    if (!read->isVirtual() && !isSmall(read, elements) && !isRecomputable(read, ordinal) && !reads.contains(read))
      addRead(more, read, countRead(read, elements));
  }
  return std::min(countBytes(more), reads.contains(node) ? 0 : countRead(node, elements));
}

std::optional<BytesRead> Recomputer::collectReads(Node *node, int64_t ordinal, int64_t elements) {
  BytesRead reads;
  SmallVector<Node *> open;
  for (const Ref &input : node->inputs) {
    Node *read = getOriginal(input.node);
    // Constants and positions cost nothing, tables of a unit have a few entries.
    if (read->isVirtual())
      continue;
    bool isNoise = isSmall(read, elements);
    if (!isNoise && isRecomputable(read, ordinal)) {
      open.push_back(read);
      continue;
    }
    if (!gathered.getReadableAt(read, ordinal))
      return std::nullopt;
    if (!isNoise)
      addRead(reads, read, countRead(read, elements));
  }
  for (Node *read : open) {
    // Sums of residuals lead through all layers; most ways end here, two layers deep.
    if (countBytes(reads) + countLeast(read, ordinal, elements, reads) > node->getNumBytes())
      return std::nullopt;
    if (const std::optional<BytesRead> &deeper = findReads(read, ordinal, elements)) {
      for (auto [node, bytes] : *deeper)
        addRead(reads, node, bytes);
      continue;
    }
    if (!gathered.getReadableAt(read, ordinal))
      return std::nullopt;
    addRead(reads, read, countRead(read, elements));
  }
  return countBytes(reads) <= node->getNumBytes() ? std::optional(reads) : std::nullopt;
}

bool Recomputer::isRecomputable(Node *node, int64_t ordinal) {
  return node->kind == NodeKind::Pointwise && placement.getOrdinal(node) < ordinal &&
         placement.getLastAnchorUse(node) < ordinal && node->getNumElements() >= kSmallestRecomputed;
}

bool Recomputer::isWorthwhile(Node *node, int64_t ordinal, int64_t elements) {
  if (!isRecomputable(node, ordinal) || isSmall(node, elements))
    return false;
  const std::optional<BytesRead> &reads = findReads(node, ordinal, elements);
  if (!reads)
    return false;
  // What is made of statistics alone is a statistic: computing it elsewhere saves nothing.
  bool readsOnlyStatistics =
      !reads->empty() && llvm::all_of(*reads, [](const auto &read) { return read.first->kind == NodeKind::Reduce; });
  return !readsOnlyStatistics;
}

Node *Recomputer::recompute(Node *node, int64_t ordinal) {
  if (Node *copy = copies.lookup({node, ordinal}))
    return copy;
  Node *copy = graph.create(NodeKind::Pointwise, node->loc, node->segment);
  unsigned id = copy->id;
  *copy = *node;
  copy->id = id;
  copy->shapeIsFixed = false;
  copy->earliestOrdinal = ordinal;
  copies[{node, ordinal}] = copy;
  originals[copy] = node;
  for (Ref &input : copy->inputs) {
    Node *read = getOriginal(input.node);
    if (isWorthwhile(read, ordinal, node->getNumElements()))
      input.node = recompute(read, ordinal);
    else
      input.node = gathered.getReadableAt(read, ordinal);
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
        // What is repeated all over the reader's space would be a kernel of its own.
        bool isRepeated = llvm::any_of(input.layout.getModes(), [](const Mode &mode) { return mode.stride == 0; });
        if (!isRepeated && isWorthwhile(input.node, ordinal, input.node->getNumElements())) {
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
