//===- Graph.h - a step as scalar functions and heavy ops -------*- C++ -*-===//
//
// What fusion works on: every aten op of a step taken apart into a few kinds of nodes, with all views folded into the
// layouts through which nodes read each other.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPH_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPH_H

#include "Layout.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <functional>
#include <memory>

namespace spmd::fusion {

struct Node;

/// A logical tensor of shape `shape`: element i (row-major) is element `layout(i)` of `node`'s value.
struct Ref {
  Node *node = nullptr;
  Layout layout = Layout::contiguous(1);
  llvm::SmallVector<int64_t> shape;
  /// Elements outside the node's value are zero (only as input of a pointwise node).
  bool guarded = false;

  mlir::Type getElementType() const;
  int64_t getNumElements() const { return layout.getNumElements(); }
};

/// Emits the result of one scalar computation from its scalar arguments.
using ScalarBody = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// Emits one heavy op: gets the tensors its inputs are based on and the types of its results.
using AnchorEmitter =
    std::function<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location, mlir::ValueRange, mlir::TypeRange)>;

enum class NodeKind {
  /// A tensor that exists: a function argument or a result of an anchor.
  Tensor,
  /// The same value everywhere, or (elements attribute that is no splat) a small table; takes no memory.
  Constant,
  /// start + step * (index + rank-dependent offset); takes no memory.
  Iota,
  /// A scalar function of its inputs, all read over the node's own index space.
  Pointwise,
  /// Combines the middle one of [outer, extent, inner] of its input.
  Reduce,
  /// Each element of a rank's chunk gets the entry of its segment; takes no memory.
  SegmentBroadcast,
  /// Combines body(element) over each segment of a rank's chunk, in `pieces` parts: [segments, pieces].
  SegmentReduce,
  /// Pieces side by side (cat).
  Copy,
  /// An op that keeps its place: GEMM, attention, gather, scatter, collectives, pack, unpack, return.
  Anchor,
};

/// A box of a Copy's result, and where its elements come from.
struct Piece {
  unsigned input;
  /// Layout of the box in the result, over the box's flat index (as the input's layout).
  Layout to;
};

struct Node {
  Node(NodeKind kind, unsigned id, mlir::Location loc) : kind(kind), id(id), loc(loc) {}

  NodeKind kind;
  /// Position in the graph; nodes come after what they read.
  unsigned id;
  mlir::Location loc;
  /// The op that this is, or is a part of; empty for function arguments.
  llvm::StringRef opName;
  /// Value of `spmd.segment`, -1 when the op had none.
  int64_t segment = -1;

  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  llvm::SmallVector<Ref, 3> inputs;

  /// Number of the anchor after which the node runs at the earliest (see Placement.h).
  int64_t earliestOrdinal = -1;
  /// Whether the node runs as late as its readers allow: it computes again what forward has computed.
  bool isLate = false;

  /// Pointwise, SegmentReduce.
  ScalarBody body;
  /// Pointwise: whether it is its only input in a wider floating-point type, exactly.
  bool widens = false;
  /// Reduce, SegmentReduce.
  kernel::ReduceKind reduceKind = kernel::ReduceKind::Add;
  int64_t outer = 1, extent = 1, inner = 1;
  /// Constant.
  mlir::Attribute constant;
  /// Iota.
  double start = 0, step = 1;
  /// SegmentBroadcast, SegmentReduce, and Pointwise nodes over a chunk that depend on one: the unit.
  ShardUnitOp unit;
  int64_t pieces = 1;
  /// Copy.
  llvm::SmallVector<Piece> boxes;
  /// Anchor.
  AnchorEmitter emit;
  llvm::SmallVector<Node *> results;
  /// Where an attention's gradients lie in what it writes.
  llvm::SmallVector<kernel::ViewAttr, 3> gradientViews;
  mlir::Operation *op = nullptr;
  /// Tensor: the anchor it comes from, or the function argument it is.
  Node *producer = nullptr;
  mlir::Value value;
  /// Whether somebody needs the value in exactly this shape.
  bool shapeIsFixed = false;

  int64_t getNumElements() const { return numElements(shape); }
  int64_t getNumBytes() const;
  mlir::RankedTensorType getType() const { return mlir::RankedTensorType::get(shape, elementType); }
  /// Whether this is computed by a generated cluster that can have several ops.
  bool isFusible() const { return kind == NodeKind::Pointwise || kind == NodeKind::Reduce; }
  /// Whether this is computed by a kernel that is placed freely.
  bool isLight() const { return isFusible() || kind == NodeKind::SegmentReduce || kind == NodeKind::Copy; }
  /// Whether this never is a tensor: readers compute it.
  bool isVirtual() const {
    return kind == NodeKind::Constant || kind == NodeKind::Iota || kind == NodeKind::SegmentBroadcast;
  }
  /// A reduction with elements inside the reduced dim: sums of columns.
  bool isColumnReduce() const { return kind == NodeKind::Reduce && inner > 1; }
};

/// Nodes in an order in which every node follows what it reads.
class Graph {
public:
  Node *create(NodeKind kind, mlir::Location loc, int64_t segment);
  llvm::ArrayRef<std::unique_ptr<Node>> getNodes() const { return nodes; }
  /// Replaces the order of the nodes (ids are renewed).
  void reorder(llvm::ArrayRef<Node *> order);
  /// Drops light and virtual nodes that no anchor depends on.
  void removeDead();

private:
  std::vector<std::unique_ptr<Node>> nodes;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_GRAPH_H
