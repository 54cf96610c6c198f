//===- Emitter.cpp - kernel ops from a clustered graph --------------------===//

#include "Emitter.h"

#include "../Graph/RankGroup.h"
#include "BodyBuilder.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::fusion {

/// Elements an iteration of an elementwise cluster should have at least.
constexpr int64_t kIterationElements = 64;
/// Iterations an elementwise cluster should have if it can, and elements of an iteration beyond which it is cut for
/// that.
constexpr int64_t kIterations = 64, kLongIteration = 4096;

Emitter::Emitter(func::FuncOp func, const Graph &graph, const Placement &placement,
                 ArrayRef<std::unique_ptr<Cluster>> clusters)
    : func(func), placement(placement), clusters(clusters), builder(func.getContext()) {
  for (const std::unique_ptr<Node> &node : graph.getNodes())
    if (node->kind == NodeKind::Tensor && node->value)
      values[node.get()] = node->value;
  findEscapingNodes(graph);
  delayReleases();
}

void Emitter::findEscapingNodes(const Graph &graph) {
  llvm::DenseMap<Node *, const Cluster *> clusterOf;
  for (const std::unique_ptr<Cluster> &cluster : clusters)
    for (Node *member : cluster->members)
      clusterOf[member] = cluster.get();
  for (const std::unique_ptr<Node> &node : graph.getNodes()) {
    const Cluster *cluster = clusterOf.lookup(node.get());
    forEachRead(node.get(), [&](Node *read) {
      if (!cluster || clusterOf.lookup(read) != cluster)
        escaping.insert(read);
    });
  }
}

/// Light ops may run later than they stood, so a buffer is released after its last reader.
void Emitter::delayReleases() {
  llvm::DenseMap<Node *, int64_t> lastReads;
  auto noteRead = [&](Node *read, int64_t ordinal) {
    int64_t &last = lastReads.try_emplace(read, -1).first->second;
    last = std::max(last, ordinal);
  };
  for (const std::unique_ptr<Cluster> &cluster : clusters)
    for (Node *member : cluster->members)
      forEachRead(member, [&](Node *read) { noteRead(read, cluster->ordinal); });
  for (Node *anchor : placement.getAnchors())
    if (!anchor->op || !isa<ReleaseOp>(anchor->op))
      forEachRead(anchor, [&](Node *read) { noteRead(read, placement.getOrdinal(anchor)); });
  // Readers of a view read the buffer.
  for (Node *anchor : placement.getAnchors())
    if (anchor->op && isa<UnpackOp>(anchor->op))
      for (Node *view : anchor->results)
        if (auto last = lastReads.find(view); last != lastReads.end())
          noteRead(anchor->inputs.front().node, last->second);
  for (Node *anchor : placement.getAnchors()) {
    if (!anchor->op || !isa<ReleaseOp>(anchor->op))
      continue;
    auto last = lastReads.find(anchor->inputs.front().node);
    if (last == lastReads.end() || last->second < placement.getOrdinal(anchor))
      continue;
    delayed[last->second].push_back(anchor);
    delayedReleases.insert(anchor);
  }
}

void Emitter::run() {
  Operation *terminator = func.getBody().front().getTerminator();
  builder.setInsertionPoint(terminator);
  size_t next = 0;
  auto emitClusters = [&](int64_t ordinal) {
    for (; next < clusters.size() && clusters[next]->ordinal == ordinal; ++next)
      emitCluster(*clusters[next]);
    for (Node *release : delayed.lookup(ordinal))
      emitAnchor(release);
  };
  emitClusters(-1);
  for (Node *anchor : placement.getAnchors()) {
    if (!delayedReleases.contains(anchor))
      emitAnchor(anchor);
    emitClusters(placement.getOrdinal(anchor));
  }
}

/// Where a kernel comes from: its results first, then what else is in it.
static Location getResultsLocation(MLIRContext *context, ArrayRef<Node *> outputs, ArrayRef<Node *> members) {
  llvm::SetVector<Location> locations;
  for (auto [index, node] : llvm::enumerate(outputs))
    locations.insert(getResultLoc(node->opName, index, node->loc));
  for (Node *member : members)
    if (!llvm::is_contained(outputs, member))
      locations.insert(member->loc);
  return FusedLoc::get(context, locations.getArrayRef());
}

void Emitter::emitAnchor(Node *anchor) {
  SmallVector<Value> operands;
  for (const Ref &input : anchor->inputs)
    operands.push_back(values.lookup(input.node));
  if (Operation *op = anchor->op) {
    unsigned next = 0;
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()))
        operand.set(operands[next++]);
    if (!op->hasTrait<OpTrait::IsTerminator>())
      op->moveBefore(builder.getInsertionBlock()->getTerminator());
    return;
  }
  SmallVector<Type> types;
  for (Node *result : anchor->results)
    types.push_back(result->getType());
  // A check of row numbers has no result.
  Location loc = types.empty() ? anchor->loc : getResultsLocation(builder.getContext(), anchor->results, {});
  SmallVector<Value> results = anchor->emit(builder, loc, operands, types);
  if (anchor->segment >= 0)
    std::prev(builder.getInsertionPoint())->setAttr(kSegmentAttr, builder.getI64IntegerAttr(anchor->segment));
  for (auto [node, value] : llvm::zip_equal(anchor->results, results))
    values[node] = value;
}

void Emitter::emitCluster(const Cluster &cluster) {
  Node *first = cluster.members.front();
  if (first->kind == NodeKind::Copy)
    emitCopy(cluster);
  else if (first->kind == NodeKind::SegmentReduce)
    emitSegmentReduce(cluster);
  else if (cluster.unit)
    emitChunk(cluster);
  else
    emitFused(cluster);
}

Location Emitter::getLocation(const Cluster &cluster) {
  return getResultsLocation(func.getContext(), getOutputs(cluster), cluster.members);
}

SmallVector<Node *> Emitter::getOutputs(const Cluster &cluster) {
  return llvm::to_vector(llvm::make_filter_range(cluster.members, [&](Node *node) { return escaping.contains(node); }));
}

void Emitter::finish(const Cluster &cluster, Operation *kernel, ArrayRef<Node *> outputs) {
  int64_t segment = -1;
  for (Node *member : cluster.members)
    segment = std::max(segment, member->segment);
  if (segment >= 0)
    kernel->setAttr(kSegmentAttr, builder.getI64IntegerAttr(segment));
  for (auto [node, value] : llvm::zip_equal(outputs, kernel->getResults()))
    values[node] = value;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// The largest divisor of `value` that is at most `limit`.
static int64_t getDivisorUpTo(int64_t value, int64_t limit) {
  int64_t divisor = std::min(value, limit);
  while (value % divisor != 0)
    --divisor;
  return divisor;
}

/// The dims of an elementwise cluster and how many of them are parallel: inner dims are an iteration until it is long
/// enough, and an iteration too long is cut when there would be few.
static std::pair<SmallVector<int64_t>, int64_t> getElementwiseDims(const Cluster &cluster) {
  SmallVector<int64_t> borders = cluster.borders;
  SmallVector<int64_t> dims = cutSpace(cluster.count, borders);
  if (dims.size() > 1 && dims.back() > kLongIteration && cluster.count / dims.back() < kIterations) {
    borders.insert(borders.begin(), getDivisorUpTo(dims.back(), kLongIteration));
    dims = cutSpace(cluster.count, borders);
  }
  if (dims.size() == 1)
    return {dims, 1};
  int64_t parallel = dims.size(), iteration = 1;
  while (parallel > 1 && iteration < kIterationElements)
    iteration *= dims[--parallel];
  return {dims, parallel};
}

void Emitter::emitFused(const Cluster &cluster) {
  SmallVector<int64_t> dims = cutSpace(cluster.count, cluster.borders);
  int64_t parallel = 0;
  if (cluster.row.isEmpty() && cluster.column.isEmpty()) {
    std::tie(dims, parallel) = getElementwiseDims(cluster);
  } else {
    // Dims outside the outermost reduced one.
    int64_t outermost =
        std::max(cluster.row.isEmpty() ? 1 : cluster.row.outer, cluster.column.isEmpty() ? 1 : cluster.column.outer);
    for (int64_t inner = cluster.count; inner > outermost; ++parallel)
      inner /= dims[parallel];
  }

  MLIRContext *context = func.getContext();
  SmallVector<Read> tensors;
  for (const Read &read : cluster.reads)
    if (!read.node->isVirtual())
      tensors.push_back(read);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> operandMaps, resultMaps;
  SmallVector<int64_t> guarded;
  for (const Read &read : tensors) {
    if (read.guarded)
      guarded.push_back(inputs.size());
    inputs.push_back(values.lookup(read.node));
    operandMaps.push_back(getAccessMap(context, read.layout, dims));
  }
  SmallVector<Node *> outputs = getOutputs(cluster);
  SmallVector<Type> types;
  for (Node *node : outputs) {
    types.push_back(node->getType());
    resultMaps.push_back(getAccessMap(context, cluster.positions.find(node)->second, dims));
  }

  Location loc = getLocation(cluster);
  auto kernel =
      kernel::ClusterOp::create(builder, loc, types, inputs, dims, parallel, operandMaps, resultMaps, guarded);
  BodyBuilder body(ImplicitLocOpBuilder::atBlockEnd(loc, kernel.getBodyBlock()), cluster, dims);
  for (auto [read, argument] : llvm::zip_equal(tensors, kernel.getBodyBlock()->getArguments()))
    body.bind(read, argument);
  body.computeMembers();
  SmallVector<Value> yielded;
  for (Node *node : outputs)
    yielded.push_back(body.get(node));
  OpBuilder end = OpBuilder::atBlockEnd(kernel.getBodyBlock());
  kernel::YieldOp::create(end, loc, yielded);
  finish(cluster, kernel, outputs);
}

//===----------------------------------------------------------------------===//
// Chunks of flat buffers
//===----------------------------------------------------------------------===//

/// Where a rank's chunk begins in the flat buffer.
static AffineMap getChunkPosition(ShardUnitOp unit, int64_t chunk) {
  MLIRContext *context = unit.getContext();
  AffineExpr position = getAffineConstantExpr(0, context);
  RankGroup group(unit, unit.getMeshAttr(), unit.getAxes());
  if (unit.isSharded())
    for (auto [axis, weight] : llvm::enumerate(group.weights))
      position = position + getAffineSymbolExpr(axis, context) * (weight * chunk);
  return AffineMap::get(0, group.weights.size(), position);
}

static kernel::SegmentedOp createSegmented(OpBuilder &builder, Location loc, ShardUnitOp unit, int64_t chunk,
                                           TypeRange types, ValueRange elements, ValueRange tables, ValueRange scalars,
                                           int64_t pieces) {
  SmallVector<int64_t> starts, ends;
  for (SegmentAttr segment : unit.getLayout().getSegments()) {
    starts.push_back(segment.getOffset());
    ends.push_back(segment.getOffset() + segment.getNumel());
  }
  return kernel::SegmentedOp::create(builder, loc, types, elements, tables, scalars, chunk,
                                     getChunkPosition(unit, chunk), starts, ends, pieces);
}

void Emitter::emitChunk(const Cluster &cluster) {
  SmallVector<Read> elements, tables, scalars;
  for (const Read &read : cluster.reads) {
    if (read.node->kind == NodeKind::SegmentBroadcast) {
      if (!read.node->inputs.front().node->isVirtual())
        tables.push_back(read);
    } else if (!read.node->isVirtual()) {
      bool isScalar = !read.layout.isIdentity() || read.node->getNumElements() != cluster.count;
      (isScalar ? scalars : elements).push_back(read);
    }
  }
  auto getValues = [&](ArrayRef<Read> reads) {
    return llvm::map_to_vector(reads, [&](const Read &read) {
      Node *node = read.node;
      return values.lookup(node->kind == NodeKind::SegmentBroadcast ? node->inputs.front().node : node);
    });
  };
  SmallVector<Node *> outputs = getOutputs(cluster);
  SmallVector<Type> types = llvm::map_to_vector(outputs, [](Node *node) { return Type(node->getType()); });

  Location loc = getLocation(cluster);
  kernel::SegmentedOp kernel = createSegmented(builder, loc, cluster.unit, cluster.count, types, getValues(elements),
                                               getValues(tables), getValues(scalars), /*pieces=*/1);
  BodyBuilder body(ImplicitLocOpBuilder::atBlockEnd(loc, kernel.getBodyBlock()), cluster, {cluster.count});
  unsigned next = 0;
  for (ArrayRef<Read> group : {ArrayRef<Read>(elements), ArrayRef<Read>(tables), ArrayRef<Read>(scalars)})
    for (const Read &read : group)
      body.bind(read, kernel.getBodyBlock()->getArgument(next++));
  body.computeMembers();
  SmallVector<Value> yielded = llvm::map_to_vector(outputs, [&](Node *node) { return body.get(node); });
  OpBuilder end = OpBuilder::atBlockEnd(kernel.getBodyBlock());
  kernel::YieldOp::create(end, loc, yielded);
  finish(cluster, kernel, outputs);
}

void Emitter::emitSegmentReduce(const Cluster &cluster) {
  Node *node = cluster.members.front();
  Node *chunk = node->inputs.front().node;
  kernel::SegmentedOp kernel =
      createSegmented(builder, getLocation(cluster), node->unit, chunk->getNumElements(), node->getType(),
                      values.lookup(chunk), {}, {}, node->pieces);
  ImplicitLocOpBuilder b = ImplicitLocOpBuilder::atBlockEnd(node->loc, kernel.getBodyBlock());
  Value term = node->body(b, kernel.getBodyBlock()->getArguments());
  Value total = kernel::ReduceOp::create(b, node->reduceKind, term, ArrayRef<int64_t>{0});
  kernel::YieldOp::create(b, total);
  finish(cluster, kernel, node);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void Emitter::emitCopy(const Cluster &cluster) {
  Node *node = cluster.members.front();
  MLIRContext *context = func.getContext();
  llvm::SetVector<Value> sources;
  SmallVector<Attribute> pieces;
  for (const Piece &box : node->boxes) {
    const Ref &input = node->inputs[box.input];
    Value source = values.lookup(input.node);
    sources.insert(source);
    SmallVector<int64_t> borders = box.to.getBorders();
    llvm::append_range(borders, input.layout.getBorders());
    canCut(input.getNumElements(), borders, Digit(), Digit());
    SmallVector<int64_t> dims = cutSpace(input.getNumElements(), borders);
    int64_t number = llvm::find(sources, source) - sources.begin();
    pieces.push_back(kernel::PieceAttr::get(context, number, dims, getAccessMap(context, input.layout, dims),
                                            getAccessMap(context, box.to, dims)));
  }
  auto kernel = kernel::CopyOp::create(builder, getLocation(cluster), node->getType(), sources.getArrayRef(),
                                       builder.getArrayAttr(pieces), /*symbol=*/StringAttr());
  finish(cluster, kernel, node);
}

} // namespace spmd::fusion
