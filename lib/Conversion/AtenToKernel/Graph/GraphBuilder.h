//===- GraphBuilder.h - building the graph of a step ------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPHBUILDER_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPHBUILDER_H

#include "Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd::fusion {

/// What a log-softmax over the last dim was made of, for those who use its result: all but `input` and `exp` have one
/// entry per row.
struct LogSoftmaxParts {
  Ref input, max, exp, sum;
};

/// Makes nodes for the op that is being lowered. Views come back as layouts; where a layout cannot say what a view
/// does, the value is copied first. All of it depends on shapes only, so that fusing or not fusing the nodes
/// afterwards cannot change a bit.
class GraphBuilder {
public:
  /// `reductionBlocks`: most blocks of a reduction in several passes. `fewerLaunches`: sums of all blocks are added up
  /// by one kernel, however many they are. `clampIndices`: row numbers that are checked are also made such that reading
  /// by them stays inside, for targets that find bad ones when the step is over.
  GraphBuilder(Graph &graph, int64_t reductionBlocks, bool fewerLaunches, bool clampIndices)
      : graph(graph), reductionBlocks(reductionBlocks), fewerLaunches(fewerLaunches), clampIndices(clampIndices) {}

  bool clampsIndices() const { return clampIndices; }

  /// New nodes get the location, the name and the segment of `op`.
  void setOrigin(mlir::Operation *op);

  mlir::MLIRContext *getContext() const { return loc->getContext(); }
  Ref get(mlir::Value value) const { return values.lookup(value); }
  void set(mlir::Value value, Ref ref) { values[value] = std::move(ref); }

  /// What is known of a value beside its node: how it was made, or its sum over the last dim (which stays, as 1). So a
  /// loss and its gradient are computed from exp(x - max), and never take its logarithm's exponential.
  void setLogSoftmax(mlir::Value value, LogSoftmaxParts parts) { logSoftmaxes[value] = std::move(parts); }
  const LogSoftmaxParts *findLogSoftmax(mlir::Value value) const {
    auto found = logSoftmaxes.find(value);
    return found == logSoftmaxes.end() ? nullptr : &found->second;
  }
  void setRowSum(mlir::Value value, Ref sum) { rowSums[value] = std::move(sum); }
  const Ref *findRowSum(mlir::Value value) const {
    auto found = rowSums.find(value);
    return found == rowSums.end() ? nullptr : &found->second;
  }

  /// A function argument.
  Ref addArgument(mlir::BlockArgument argument);
  /// An op that keeps its place among the anchors: `op` itself, or what `emit` makes.
  Node *addAnchor(mlir::ArrayRef<Ref> inputs, AnchorEmitter emit, mlir::Operation *op = nullptr);
  /// Another result of an anchor.
  Ref addResult(Node *anchor, mlir::ArrayRef<int64_t> shape, mlir::Type elementType);

  // Views.
  Ref reshape(Ref ref, mlir::ArrayRef<int64_t> shape);
  Ref permute(Ref ref, mlir::ArrayRef<int64_t> permutation);
  /// Right-aligned broadcasting.
  Ref expand(Ref ref, mlir::ArrayRef<int64_t> shape);
  Ref slice(Ref ref, int64_t dim, int64_t start, int64_t step, int64_t length);

  // Values.
  Ref constant(mlir::Attribute value, mlir::Type elementType, mlir::ArrayRef<int64_t> shape);
  Ref constant(double value, mlir::Type elementType, mlir::ArrayRef<int64_t> shape);
  /// start + step * i for i < count.
  Ref iota(int64_t count, mlir::Type elementType, double start = 0, double step = 1);
  /// `body` of the inputs, broadcast to their common shape.
  Ref pointwise(mlir::ArrayRef<Ref> inputs, mlir::Type elementType, ScalarBody body);
  /// Conversion to another element type, as PyTorch converts.
  Ref cast(Ref ref, mlir::Type elementType);
  /// Combines the elements along `dims`, which disappear (or become 1). The shape of the reduction tree follows from
  /// the shapes alone; f16 and bf16 are combined in f32.
  Ref reduce(kernel::ReduceKind kind, Ref ref, mlir::ArrayRef<int64_t> dims, bool keepDims);
  Ref segmentBroadcast(Ref table, ShardUnitOp unit, int64_t chunk);
  /// [segments] from this rank's chunk; f16 and bf16 are extended for `body` and combined in f32, which is the result.
  Ref segmentReduce(kernel::ReduceKind kind, Ref chunk, ShardUnitOp unit, ScalarBody body);
  /// The refs side by side along `dim`: a view where they are evenly spaced parts of one value.
  Ref concatenate(mlir::ArrayRef<Ref> refs, int64_t dim);
  /// That view; nothing where they are not.
  std::optional<Ref> concatenateParts(mlir::ArrayRef<Ref> refs, int64_t dim);

  /// `shape` with the rows of `value` from row `start` of dim `dim`, the rest from `background` (zero without one). A
  /// select over guarded reads, so that it fuses with what uses it.
  Ref embedRows(Ref value, std::optional<Ref> background, mlir::ArrayRef<int64_t> shape, int64_t dim, int64_t start);

  /// The same value in a tensor of its own, contiguous.
  Ref materialize(Ref ref);
  /// The same for a heavy op, shared by all of its segment that read the same elements in the same order.
  Ref copyOperand(Ref ref);
  /// The same value as a whole tensor: contiguous, of exactly the ref's shape.
  Ref whole(Ref ref);
  /// The same value as a contiguous run of elements of some tensor that exists.
  Ref contiguous(Ref ref);

private:
  /// A node that reads `inputs`, which are made before it, as the graph's order wants them.
  Node *create(NodeKind kind, mlir::ArrayRef<Ref> inputs = {});
  Ref makeTable(mlir::ArrayRef<Ref> entries);
  void readAlone(const Node &node, mlir::SmallVectorImpl<Ref> &inputs);
  /// One pass over [outer, extent, inner].
  Ref reduceOnce(kernel::ReduceKind kind, Ref ref, int64_t outer, int64_t extent, int64_t inner);
  /// In one pass, or in two or three when one would have too little parallelism.
  Ref reduceRun(kernel::ReduceKind kind, Ref ref, int64_t outer, int64_t extent, int64_t inner);
  Ref asRef(Node *node);

  Graph &graph;
  int64_t reductionBlocks;
  bool fewerLaunches;
  bool clampIndices;
  llvm::DenseMap<mlir::Value, Ref> values, rowSums;
  /// By segment and node: views and their copies.
  llvm::DenseMap<std::pair<int64_t, Node *>, llvm::SmallVector<std::pair<Layout, Node *>, 1>> operandCopies;
  llvm::DenseMap<mlir::Value, LogSoftmaxParts> logSoftmaxes;
  std::optional<mlir::Location> loc;
  llvm::StringRef opName;
  int64_t segment = -1;
  bool isLate = false;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPHBUILDER_H
