//===- LowerSpmd.cpp - collectives, flat buffers, rank-dependent rows -----===//

#include "Lowering.h"

#include "../Graph/RankGroup.h"
#include "../Graph/ScalarBodies.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

namespace {

/// The row numbers of a rank's chunk of `dim` (seen as [pre][chunk]) in the whole dim, shaped for broadcasting over a
/// tensor of shape `shape`.
Ref rowNumbers(GraphBuilder &g, Type i64, const RankGroup &group, ArrayRef<int64_t> shape, int64_t dim, int64_t pre,
               int64_t chunk) {
  Ref all = g.iota(chunk * group.size, i64);
  Layout mine = *all.layout.sliceRank({chunk * group.size}, 0, 1, group.weights, chunk);
  Ref rows{all.node, mine, {chunk}, false};
  rows = g.expand(rows, {pre, chunk});
  SmallVector<int64_t> broadcast(shape.size(), 1);
  broadcast[dim] = pre * chunk;
  return g.reshape(rows, broadcast);
}

LogicalResult lowerSlice(GraphBuilder &g, SliceOp op) {
  Ref input = g.get(op.getInput());
  RankGroup group(op, op.getMeshAttr(), op.getAxes());
  int64_t dim = op.getDim(), pre = op.getPre(), chunk = op.getChunk(), total = input.shape[dim] / pre;
  SmallVector<int64_t> shape(typeOf(op.getResult()).getShape());
  bool isEven = chunk * group.size == total;
  if (!isEven && !input.node->isVirtual())
    input = g.contiguous(input);
  std::optional<Layout> layout = input.layout.sliceRank(input.shape, dim, pre, group.weights, chunk);
  if (!layout) {
    input = g.materialize(input);
    layout = input.layout.sliceRank(input.shape, dim, pre, group.weights, chunk);
  }
  Ref rows{input.node, *layout, shape, /*guarded=*/!isEven && !input.node->isVirtual()};
  if (isEven) {
    g.set(op.getResult(), rows);
    return success();
  }
  // The last ranks' chunks reach past the end: those rows are zero.
  Type type = rows.getElementType(), i64 = IntegerType::get(op.getContext(), 64);
  Ref number = rowNumbers(g, i64, group, shape, dim, pre, chunk);
  g.set(op.getResult(), g.pointwise({number, rows}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, i64);
    return s.select(s.compare("lt", args[0], s.constant(total)), args[1], ScalarBuilder(b, type).constant(0));
  }));
  return success();
}

/// `fill` as an element: for integers the infinities are the lowest and highest value.
Attribute getFill(Type type, double fill) {
  Builder b(type.getContext());
  if (isa<FloatType>(type))
    return b.getFloatAttr(type, fill);
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return b.getIntegerAttr(type, fill > 0 ? 1 : 0);
  if (std::isinf(fill) && type.isUnsignedInteger())
    return b.getIntegerAttr(type, fill > 0 ? APInt::getMaxValue(width) : APInt::getMinValue(width));
  if (std::isinf(fill))
    return b.getIntegerAttr(type, fill > 0 ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
  return b.getIntegerAttr(type, static_cast<int64_t>(fill));
}

LogicalResult lowerMask(GraphBuilder &g, MaskOp op) {
  Ref input = g.get(op.getInput());
  RankGroup group(op, op.getMeshAttr(), op.getAxes());
  if (op.getChunk() * group.size <= op.getTotal()) {
    g.set(op.getResult(), input);
    return success();
  }
  Type type = input.getElementType(), i64 = IntegerType::get(op.getContext(), 64);
  int64_t total = op.getTotal();
  Ref number = rowNumbers(g, i64, group, input.shape, op.getDim(), op.getPre(), op.getChunk());
  Ref fill = g.constant(getFill(type, op.getFill().convertToDouble()), type, {});
  g.set(op.getResult(), g.pointwise({number, input, fill}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, i64);
    return s.select(s.compare("lt", args[0], s.constant(total)), args[1], args[2]);
  }));
  return success();
}

ShardUnitOp getShardUnit(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, name);
}

LogicalResult lowerSegmentNorm(GraphBuilder &g, SegmentNormOp op) {
  ShardUnitOp unit = getShardUnit(op, op.getUnitAttr());
  Ref chunk = g.get(op.getChunk());
  Type own = chunk.getElementType(), type = getComputeType(own);
  if (op.getKind() != ReduceKind::norm2 && op.getKind() != ReduceKind::max)
    return op.emitOpError("has a kernel for kinds norm2 and max only");
  bool isMax = op.getKind() == ReduceKind::max;
  Ref table = g.segmentReduce(isMax ? kernel::ReduceKind::Max : kernel::ReduceKind::Add, chunk, unit,
                              [=](ImplicitLocOpBuilder &b, ValueRange args) {
                                ScalarBuilder s(b, type);
                                return isMax ? s.abs(args[0]) : s.square(args[0]);
                              });
  // An empty part of a segment has the neutral element, -inf for max.
  table = g.pointwise({table}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, type);
    return isMax ? s.max(args[0], s.constant(0)) : s.sqrt(args[0]);
  });
  g.set(op.getTable(), g.cast(table, own));
  return success();
}

/// The value for a slot of a flat buffer: a whole tensor that some kernel makes for this slot alone, so that the plan
/// can let it write there.
Ref getSlot(GraphBuilder &g, PackOp pack, unsigned index, ArrayRef<Ref> slots) {
  Ref given = g.get(pack.getValues()[index]), slot = g.whole(given);
  bool isProduced = slot.node->kind != NodeKind::Tensor || (slot.node->producer && !slot.node->producer->op);
  bool isTaken = llvm::any_of(slots, [&](const Ref &other) { return other.node == slot.node; });
  if (!isProduced || isTaken)
    slot = g.whole(g.materialize(slot));
  if (slot.node != given.node && !given.node->isVirtual())
    pack.emitRemark() << "copies the value of " << pack.getNames()[index] << " into its slot of the flat buffer";
  return slot;
}

/// Keeps the op where it is among the heavy ops; its tensors are whole.
LogicalResult keep(GraphBuilder &g, Operation *op) {
  SmallVector<Ref> inputs;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (auto pack = dyn_cast<PackOp>(op))
      inputs.push_back(getSlot(g, pack, index, inputs));
    else if (isa<RankedTensorType>(operand.getType()))
      inputs.push_back(g.whole(g.get(operand)));
  }
  Node *anchor = g.addAnchor(inputs, nullptr, op);
  for (Value result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    Ref ref = g.addResult(anchor, type.getShape(), type.getElementType());
    ref.node->value = result;
    g.set(result, ref);
  }
  return success();
}

} // namespace

Lowered lowerSpmdOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](SliceOp slice) -> Lowered { return lowerSlice(g, slice); })
      .Case([&](MaskOp mask) -> Lowered { return lowerMask(g, mask); })
      .Case([&](SegmentBroadcastOp broadcast) -> Lowered {
        RankedTensorType type = typeOf(broadcast.getResult());
        g.set(broadcast.getResult(),
              g.segmentBroadcast(g.get(broadcast.getTable()), getShardUnit(op, broadcast.getUnitAttr()),
                                 type.getNumElements()));
        return success();
      })
      .Case([&](SegmentNormOp norm) -> Lowered { return lowerSegmentNorm(g, norm); })
      .Case<CollectiveOpInterface, WaitOp, ReleaseOp, PackOp, UnpackOp, func::ReturnOp>(
          [&](Operation *kept) -> Lowered { return keep(g, kept); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
