//===- Clusters.cpp - which light nodes become one kernel -----------------===//
//
// [Note: an example of clusters] In
//
//     %m = aten.amax %x {dim = [1], keepdim}   // 4x64 -> 4x1
//     %d = aten.sub.Tensor %x, %m
//     %t = aten.permute %d [1, 0]              // a view: where %n reads, no node
//     %n = aten.neg %t                         // 64x4
//
// the nodes are taken in program order:
//
//   1. %m begins cluster A: a space of 256 elements (what is reduced), the reduced digit of 64 is its row. %m lies at
//      position i / 64.
//   2. %d reads %m of A where it lies, and has as many elements: it joins A, at position i.
//   3. %n reads %d at element i / 4 + i % 4 * 64, which is not where %d is computed. It begins cluster B, one level
//      above A.
//
// A is one kernel that reads %x once, B another that reads what A has written:
//
//     %d = kernel.cluster dims [4, 64] ins(%a = %x at (d0, d1) -> (d0 * 64 + d1)) {
//       %m = kernel.reduce <max> %a over [1]
//       yield arith.subf %a, %m }
//     %n = kernel.cluster dims [64, 4] ins(%a = %d at (d0, d1) -> (d0 + d1 * 64)) { yield arith.negf %a }
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"

#include "../Graph/IterationSpace.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

/// Tensors one kernel reads at most.
constexpr size_t kMaxReads = 32;
/// A tensor of fewer elements is no reason to fuse two of its readers.
constexpr int64_t kSmallestShared = 1024;

/// What a cluster would have to take in for one more node.
struct Admission {
  Layout position = Layout::contiguous(1);
  SmallVector<Read> reads;
  SmallVector<int64_t> borders;
  Digit row, column;
  ShardUnitOp unit;
};

class ClusterBuilder {
public:
  ClusterBuilder(const Graph &graph, const Placement &placement, bool fuse, bool fewerLaunches)
      : graph(graph), placement(placement), fuse(fuse), fewerLaunches(fewerLaunches) {
    for (const std::unique_ptr<Node> &node : graph.getNodes())
      forEachRead(node.get(), [&](Node *read) { readers[read].push_back(node.get()); });
  }

  std::vector<std::unique_ptr<Cluster>> run();

private:
  std::optional<Admission> admit(const Cluster &cluster, Node *node) const;
  std::optional<Layout> getNodePosition(const Cluster &cluster, Node *node) const;
  void join(Cluster &cluster, Node *node, const Admission &admission);
  bool merge(Cluster &into, Cluster &from);
  bool canLift(const Cluster &cluster, int64_t level, const Cluster &target);
  void raise(Cluster &cluster, int64_t level);
  bool tryJoinProducers(Node *node, ArrayRef<Cluster *> producers);
  bool tryJoinSibling(Node *node, int64_t level);
  void createCluster(Node *node, int64_t level);

  const Graph &graph;
  const Placement &placement;
  bool fuse, fewerLaunches;
  /// In the order in which they were made; one without members was merged.
  std::vector<std::unique_ptr<Cluster>> clusters;
  llvm::DenseMap<int64_t, SmallVector<Cluster *, 4>> ofOrdinal;
  llvm::DenseMap<Node *, Cluster *> clusterOf;
  llvm::DenseMap<Node *, SmallVector<Node *, 2>> readers;
  unsigned nextId = 0;
};

} // namespace

/// Copies and reductions over segments are kernels of their own, and sums of few blocks of columns share their space
/// only with each other.
static bool canHold(const Cluster &cluster, const Node *node) {
  const Node *first = cluster.members.front();
  if (!first->isFusible() || !node->isFusible())
    return false;
  if (hasOwnSpace(first) || hasOwnSpace(node))
    return hasOwnSpace(first) && hasOwnSpace(node) && first->outer == node->outer && first->extent == node->extent &&
           first->inner == node->inner;
  return true;
}

std::optional<Layout> ClusterBuilder::getNodePosition(const Cluster &cluster, Node *node) const {
  int64_t count = node->kind == NodeKind::Reduce ? node->outer * node->extent * node->inner : node->getNumElements();
  if (count == cluster.count)
    return getFirstPosition(node);
  if (node->kind == NodeKind::Reduce)
    return std::nullopt;
  // A function of row statistics lies where they lie.
  for (const Ref &input : node->inputs) {
    auto position = cluster.positions.find(input.node);
    if (position != cluster.positions.end() && input.getNumElements() == input.node->getNumElements() &&
        input.layout.isIdentity())
      return position->second;
  }
  return std::nullopt;
}

/// A chunk of a flat buffer is read element by element, with single elements and tables beside it.
static bool areChunkReads(ArrayRef<Read> reads) {
  return llvm::all_of(reads, [](const Read &read) { return !read.guarded && isChunkRead(*read.node, read.layout); });
}

static bool isChunkCluster(const Cluster &cluster) {
  return cluster.row.isEmpty() && cluster.column.isEmpty() && areChunkReads(cluster.reads) &&
         llvm::all_of(cluster.positions, [](const auto &position) { return position.second.isIdentity(); });
}

std::optional<Admission> ClusterBuilder::admit(const Cluster &cluster, Node *node) const {
  bool isFirst = cluster.members.empty();
  // A function of nothing but sums of columns lies where they do: they are rounded where they are made.
  bool isOfSums = !isFirst && fewerLaunches && hasOwnSpace(cluster.members.front()) &&
                  node->kind == NodeKind::Pointwise && llvm::all_of(node->inputs, [&](const Ref &input) {
                    return cluster.contains(input.node) && input.layout.isIdentity();
                  });
  if (!isFirst && !isOfSums && !canHold(cluster, node))
    return std::nullopt;
  Admission admission;
  std::optional<Layout> position;
  if (isFirst)
    position = getFirstPosition(node);
  else
    position = getNodePosition(cluster, node);
  if (!position)
    return std::nullopt;

  admission.borders = cluster.borders;
  admission.row = cluster.row;
  admission.column = cluster.column;
  for (const Ref &input : node->inputs) {
    std::optional<Layout> layout = getReadLayout(input, *position);
    if (!layout)
      return std::nullopt;
    auto computed = cluster.positions.find(input.node);
    if (computed != cluster.positions.end()) {
      // Sums of columns end the cluster's loops: their readers are other clusters.
      bool isEnd = input.node->isColumnReduce() && !isOfSums;
      if (computed->second != *layout || input.guarded || isEnd)
        return std::nullopt;
      continue;
    }
    Read read{input.node, *layout, input.guarded};
    if (!llvm::is_contained(cluster.reads, read) && !llvm::is_contained(admission.reads, read))
      admission.reads.push_back(read);
    if (input.node->kind != NodeKind::Constant || isa<ElementsAttr>(input.node->constant))
      llvm::append_range(admission.borders, layout->getBorders());
  }
  if (cluster.reads.size() + admission.reads.size() > kMaxReads)
    return std::nullopt;

  if (node->kind == NodeKind::Reduce) {
    std::optional<Digit> digit = getReducedDigit(node, *position);
    if (!digit)
      return std::nullopt;
    Digit &reduced = node->isColumnReduce() ? admission.column : admission.row;
    if (!reduced.isEmpty() && !(reduced == *digit))
      return std::nullopt;
    reduced = *digit;
    admission.position = getReducePosition(node, *position);
  } else {
    admission.position = *position;
  }
  llvm::append_range(admission.borders, admission.position.getBorders());
  int64_t count = isFirst ? position->getNumElements() : cluster.count;
  if (!canCut(count, admission.borders, admission.row, admission.column))
    return std::nullopt;

  admission.unit = node->unit ? node->unit : cluster.unit;
  if (admission.unit) {
    bool isSameUnit = !cluster.unit || !node->unit || cluster.unit == node->unit;
    if (!isSameUnit || node->kind == NodeKind::Reduce || !admission.position.isIdentity() ||
        !areChunkReads(admission.reads) || !isChunkCluster(cluster))
      return std::nullopt;
  }
  return admission;
}

void ClusterBuilder::join(Cluster &cluster, Node *node, const Admission &admission) {
  cluster.members.push_back(node);
  cluster.positions.try_emplace(node, admission.position);
  llvm::append_range(cluster.reads, admission.reads);
  cluster.borders = admission.borders;
  cluster.row = admission.row;
  cluster.column = admission.column;
  cluster.unit = admission.unit;
  clusterOf[node] = &cluster;
}

/// Takes `from`, of the same ordinal and not above, into `into`, if their spaces agree.
bool ClusterBuilder::merge(Cluster &into, Cluster &from) {
  if (!canHold(into, from.members.front()) || into.count != from.count ||
      into.reads.size() + from.reads.size() > kMaxReads)
    return false;
  ShardUnitOp unit = into.unit ? into.unit : from.unit;
  if (unit && ((from.unit && unit != from.unit) || !isChunkCluster(into) || !isChunkCluster(from)))
    return false;
  auto agrees = [](Digit a, Digit b) { return a.isEmpty() || b.isEmpty() || a == b; };
  if (!agrees(into.row, from.row) || !agrees(into.column, from.column))
    return false;
  Digit row = into.row.isEmpty() ? from.row : into.row, column = into.column.isEmpty() ? from.column : into.column;
  SmallVector<int64_t> borders = into.borders;
  llvm::append_range(borders, from.borders);
  if (!canCut(into.count, borders, row, column))
    return false;
  // What `into` reads of `from` must be read where it is computed.
  SmallVector<Read> reads;
  for (const Read &read : into.reads) {
    auto computed = from.positions.find(read.node);
    if (computed == from.positions.end())
      reads.push_back(read);
    else if (computed->second != read.layout || read.guarded || read.node->isColumnReduce())
      return false;
  }

  into.unit = unit;
  into.row = row;
  into.column = column;
  into.borders = borders;
  into.reads = std::move(reads);
  for (const Read &read : from.reads)
    if (!llvm::is_contained(into.reads, read))
      into.reads.push_back(read);
  for (Node *member : from.members) {
    into.members.push_back(member);
    into.positions.try_emplace(member, from.positions.find(member)->second);
    clusterOf[member] = &into;
  }
  llvm::sort(into.members, [](Node *a, Node *b) { return a->id < b->id; });
  from.members.clear(); // nothing but the list of all clusters has it any more
  llvm::erase(ofOrdinal[from.ordinal], &from);
  return true;
}

/// Whether nothing but `target` reads `cluster` at or below `level`: then the cluster can go up to there.
bool ClusterBuilder::canLift(const Cluster &cluster, int64_t level, const Cluster &target) {
  return llvm::all_of(cluster.members, [&](Node *member) {
    return llvm::all_of(readers[member], [&](Node *reader) {
      Cluster *above = clusterOf.lookup(reader);
      return !above || above == &cluster || above == &target || above->ordinal != cluster.ordinal ||
             above->level > level;
    });
  });
}

/// Puts a cluster at `level`, and what reads it above.
void ClusterBuilder::raise(Cluster &cluster, int64_t level) {
  cluster.level = level;
  for (Node *member : cluster.members)
    for (Node *reader : readers[member]) {
      Cluster *above = clusterOf.lookup(reader);
      if (above && above != &cluster && above->ordinal == cluster.ordinal && above->level <= level)
        raise(*above, level + 1);
    }
}

bool ClusterBuilder::tryJoinProducers(Node *node, ArrayRef<Cluster *> producers) {
  // The highest producer, and of these the biggest, is the one that can have the others below it.
  SmallVector<Cluster *> sorted(producers);
  llvm::sort(sorted, [](Cluster *a, Cluster *b) {
    return std::tuple(-a->level, -a->count, a->id) < std::tuple(-b->level, -b->count, b->id);
  });
  if (sorted.empty())
    return false;
  Cluster *target = sorted.front();
  int64_t level = target->level;
  bool isAlone = true;
  SmallVector<Cluster *> others;
  for (Cluster *other : ArrayRef<Cluster *>(sorted).drop_front()) {
    int64_t otherLevel = other->level;
    if (canLift(*other, level, *target) && merge(*target, *other))
      continue;
    others.push_back(other);
    isAlone &= otherLevel < level;
  }
  if (std::optional<Admission> admission = admit(*target, node)) {
    // Clusters of one level do not depend on each other, so one of them can go above the others.
    if (!isAlone)
      raise(*target, level + 1);
    join(*target, node, *admission);
    return true;
  }
  // The highest may be a table that is read all over the space of another, which can go above it.
  for (Cluster *other : others) {
    std::optional<Admission> admission = admit(*other, node);
    if (!admission || !canLift(*other, level, *other))
      continue;
    raise(*other, level + 1);
    join(*other, node, *admission);
    return true;
  }
  return false;
}

bool ClusterBuilder::tryJoinSibling(Node *node, int64_t level) {
  int64_t ordinal = placement.getOrdinal(node);
  for (Cluster *cluster : llvm::reverse(ofOrdinal[ordinal])) {
    if (cluster->level < level)
      continue;
    std::optional<Admission> admission = admit(*cluster, node);
    if (!admission)
      continue;
    bool sharesRead = llvm::any_of(node->inputs, [&](const Ref &input) {
      return input.node->getNumElements() >= kSmallestShared && !input.node->isVirtual() &&
             llvm::any_of(cluster->reads, [&](const Read &read) { return read.node == input.node; }) &&
             !llvm::any_of(admission->reads, [&](const Read &read) { return read.node == input.node; });
    });
    if (!sharesRead && !hasOwnSpace(node))
      continue;
    join(*cluster, node, *admission);
    return true;
  }
  return false;
}

void ClusterBuilder::createCluster(Node *node, int64_t level) {
  clusters.push_back(std::make_unique<Cluster>());
  Cluster &cluster = *clusters.back();
  cluster.id = nextId++;
  cluster.ordinal = placement.getOrdinal(node);
  cluster.level = level;
  ofOrdinal[cluster.ordinal].push_back(&cluster);
  if (!node->isFusible()) {
    cluster.count = node->getNumElements();
    cluster.members.push_back(node);
    cluster.positions.try_emplace(node, Layout::contiguous(cluster.count));
    clusterOf[node] = &cluster;
    return;
  }
  std::optional<Admission> admission = admit(cluster, node);
  cluster.count = getFirstPosition(node).getNumElements();
  join(cluster, node, *admission);
}

std::vector<std::unique_ptr<Cluster>> ClusterBuilder::run() {
  for (const std::unique_ptr<Node> &owned : graph.getNodes()) {
    Node *node = owned.get();
    if (!node->isLight())
      continue;
    SmallVector<Cluster *> producers;
    int64_t level = 0;
    forEachRead(node, [&](Node *read) {
      Cluster *cluster = clusterOf.lookup(read);
      if (!cluster || cluster->ordinal != placement.getOrdinal(node))
        return;
      level = std::max(level, cluster->level + 1);
      if (!llvm::is_contained(producers, cluster))
        producers.push_back(cluster);
    });
    bool joined = fuse && node->isFusible() && (tryJoinProducers(node, producers) || tryJoinSibling(node, level));
    if (!joined)
      createCluster(node, level);
  }
  llvm::erase_if(clusters, [](const std::unique_ptr<Cluster> &cluster) { return cluster->members.empty(); });
  llvm::sort(clusters, [](const std::unique_ptr<Cluster> &a, const std::unique_ptr<Cluster> &b) {
    return std::tuple(a->ordinal, a->level, a->id) < std::tuple(b->ordinal, b->level, b->id);
  });
  return std::move(clusters);
}

std::vector<std::unique_ptr<Cluster>> formClusters(const Graph &graph, const Placement &placement, bool fuse,
                                                   bool fewerLaunches) {
  return ClusterBuilder(graph, placement, fuse, fewerLaunches).run();
}

} // namespace spmd::fusion
