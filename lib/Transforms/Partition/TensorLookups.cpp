//===- TensorLookups.cpp - rows of a dimension that is cut ----------------===//
//
// [Note: lookups in parts]
// An embedding whose table is cut in rows, and a loss over classes that are cut, look up rows by numbers of the whole.
// A rank takes the number of its first row off, looks up what is its own, and has 0 for the rest: a summand. Gradients
// with respect to what was looked up in are cut as that is, and nothing has to be added up for them.
//
//===----------------------------------------------------------------------===//

#include "TensorPartitioner.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;

namespace spmd::partition {

/// Whether the dimension is cut into one run of rows for each rank.
static bool isCutInRuns(const AxisState &state, int64_t dim) {
  return state.isShard() && state.dim == dim && state.pre == 1;
}

FailureOr<TensorPartitioner::OwnRows>
TensorPartitioner::findOwnRows(OpOperand &operand, int64_t rows, std::optional<int64_t> ignored, int64_t elsewhere) {
  FailureOr<Value> whole = get(operand.get(), AxisState::replicated(), operand.getOperandNumber());
  if (failed(whole))
    return failure();
  RankedTensorType type = typeOf(*whole).clone(builder.getI64Type());
  Value numbers = *whole;
  if (numbers.getType() != type)
    numbers = create<aten::ToCopyOp>(type, numbers, TypeAttr::get(type.getElementType()));
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto firsts = RankedTensorType::get({ranks}, builder.getI64Type());
  Value all = create<aten::ArangeStartStepOp>(firsts, number(0), number(ranks * rows), number(rows));
  Value first = slice(all, firsts, AxisState::shard(0, 1, 1));
  if (type.getRank() == 0)
    first = create<aten::ViewOp>(type, first, builder.getDenseI64ArrayAttr({}));
  RankedTensorType truth = type.clone(builder.getI1Type());
  Value own = create<aten::SubTensorOp>(type, numbers, first);
  Value isBehind = create<aten::GeScalarOp>(truth, own, number(0));
  Value isBefore = create<aten::LtScalarOp>(truth, own, number(rows));
  Value areHere = create<aten::LogicalAndOp>(truth, isBehind, isBefore);
  if (ignored && *ignored >= 0 && *ignored < ranks * rows) {
    Value counts = create<aten::NeScalarOp>(truth, numbers, number(*ignored));
    areHere = create<aten::LogicalAndOp>(truth, areHere, counts);
  }
  Value other = create<aten::FullOp>(RankedTensorType::get({}, type.getElementType()), builder.getDenseI64ArrayAttr({}),
                                     number(elsewhere));
  return OwnRows{areHere, create<aten::WhereSelfOp>(type, areHere, own, other)};
}

Value TensorPartitioner::keepOwn(Value value, Value areHere) {
  RankedTensorType type = typeOf(value), rows = typeOf(areHere);
  SmallVector<int64_t> shape(rows.getShape());
  shape.push_back(1);
  Value mask = create<aten::UnsqueezeOp>(rows.clone(shape), areHere, builder.getI64IntegerAttr(rows.getRank()));
  Value zero = create<aten::FullOp>(RankedTensorType::get({}, type.getElementType()), builder.getDenseI64ArrayAttr({}),
                                    builder.getF64FloatAttr(0));
  return create<aten::WhereSelfOp>(type, mask, value, zero);
}

LogicalResult TensorPartitioner::emitEmbedding(aten::EmbeddingOp op) {
  AxisState cut = getState(op.getWeight());
  FailureOr<OwnRows> own = findOwnRows(op.getIndicesMutable(), cut.chunk, std::nullopt, 0);
  FailureOr<Value> table = get(op.getWeight(), cut, 0);
  if (failed(own) || failed(table))
    return failure();
  auto clone = cast<aten::EmbeddingOp>(builder.insert(op->cloneWithoutRegions()));
  clone->setOperands({*table, own->numbers});
  clone.setPaddingIdx(-1); // of a gradient that is not this op's
  setLocal(op.getResult(), AxisState::partial(ReduceKind::sum), keepOwn(clone.getResult(), own->areHere));
  return success();
}

LogicalResult TensorPartitioner::emitEmbeddingBackward(aten::EmbeddingDenseBackwardOp op, AxisState table) {
  FailureOr<Value> gradient = get(op.getGradOutput(), AxisState::replicated(), 0);
  FailureOr<OwnRows> own =
      findOwnRows(op.getIndicesMutable(), table.chunk, static_cast<int64_t>(op.getPaddingIdx()), 0);
  if (failed(gradient) || failed(own))
    return failure();
  Value kept = keepOwn(*gradient, own->areHere);
  auto clone = cast<aten::EmbeddingDenseBackwardOp>(builder.insert(op->cloneWithoutRegions()));
  clone->setOperands({kept, own->numbers});
  clone.setNumWeights(table.chunk);
  clone.setPaddingIdx(-1);
  clone.getResult().setType(getPartType(op.getType(), table));
  setLocal(op.getResult(), table, clone.getResult());
  return success();
}

/// What is no class of a rank's is ignored there, in place of what is in the whole loss.
static constexpr int64_t kElsewhere = -1;
/// PyTorch's number of the `reduction` that divides by the total weight.
static constexpr int64_t kMean = 1;

LogicalResult TensorPartitioner::emitNllLoss(aten::NllLossForwardOp op) {
  AxisState cut = getState(op.getSelf());
  FailureOr<OwnRows> own =
      findOwnRows(op.getTargetMutable(), cut.chunk, static_cast<int64_t>(op.getIgnoreIndex()), kElsewhere);
  FailureOr<Value> self = get(op.getSelf(), cut, 0);
  if (failed(own) || failed(self))
    return failure();
  SmallVector<Value> operands{*self, own->numbers};
  if (op.getWeight()) {
    FailureOr<Value> weight = get(op.getWeight(), AxisState::shard(0, 1, cut.chunk), 2);
    if (failed(weight))
      return failure();
    operands.push_back(*weight);
  }
  auto clone = cast<aten::NllLossForwardOp>(builder.insert(op->cloneWithoutRegions()));
  clone->setOperands(operands);
  clone.setIgnoreIndex(kElsewhere);
  for (auto [old, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
    setLocal(old, AxisState::partial(ReduceKind::sum), result);
  return success();
}

LogicalResult TensorPartitioner::emitNllLossBackward(aten::NllLossBackwardOp op) {
  AxisState cut = getState(op.getSelf());
  FailureOr<OwnRows> own =
      findOwnRows(op.getTargetMutable(), cut.chunk, static_cast<int64_t>(op.getIgnoreIndex()), kElsewhere);
  if (failed(own))
    return failure();
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    AxisState want;
    if (value == op.getSelf())
      want = cut;
    else if (value == op.getWeight())
      want = AxisState::shard(0, 1, cut.chunk);
    else if (value == op.getTotalWeight() && static_cast<int64_t>(op.getReduction()) != kMean)
      want = getState(value); // It is not read.
    FailureOr<Value> local =
        value == op.getTarget() ? FailureOr<Value>(own->numbers) : get(value, want, operand.getOperandNumber());
    if (failed(local))
      return failure();
    operands.push_back(*local);
  }
  auto clone = cast<aten::NllLossBackwardOp>(builder.insert(op->cloneWithoutRegions()));
  clone->setOperands(operands);
  clone.setIgnoreIndex(kElsewhere);
  clone.getResult().setType(getPartType(op.getType(), cut));
  setLocal(op.getResult(), cut, clone.getResult());
  return success();
}

/// How the table is cut whose gradient this is: any of its size that the same numbers were looked up in, if all are
/// cut.
std::optional<AxisState> TensorPartitioner::findTable(aten::EmbeddingDenseBackwardOp op) const {
  std::optional<AxisState> table;
  for (Operation *user : op.getIndices().getUsers()) {
    auto embedding = dyn_cast<aten::EmbeddingOp>(user);
    if (!embedding || embedding.getIndices() != op.getIndices() ||
        embedding.getWeight().getType().getDimSize(0) != static_cast<int64_t>(op.getNumWeights()))
      continue;
    table = getState(embedding.getWeight());
    if (!isCutInRuns(*table, 0))
      return std::nullopt;
  }
  return table;
}

std::optional<LogicalResult> TensorPartitioner::emitLookup(Operation *op) {
  if (auto embedding = dyn_cast<aten::EmbeddingOp>(op))
    return isCutInRuns(getState(embedding.getWeight()), 0) ? std::optional(emitEmbedding(embedding)) : std::nullopt;
  if (auto backward = dyn_cast<aten::EmbeddingDenseBackwardOp>(op)) {
    std::optional<AxisState> table = findTable(backward);
    // Frequencies are those of the whole, and a gradient that is cut in columns is not the table's.
    if (!table || backward.getScaleGradByFreq() || getState(backward.getGradOutput()).isShard())
      return std::nullopt;
    return emitEmbeddingBackward(backward, *table);
  }
  auto isCutInClasses = [&](Value self) { return isCutInRuns(getState(self), typeOf(self).getRank() - 1); };
  if (auto loss = dyn_cast<aten::NllLossForwardOp>(op))
    return isCutInClasses(loss.getSelf()) ? std::optional(emitNllLoss(loss)) : std::nullopt;
  if (auto backward = dyn_cast<aten::NllLossBackwardOp>(op))
    return isCutInClasses(backward.getSelf()) ? std::optional(emitNllLossBackward(backward)) : std::nullopt;
  return std::nullopt;
}

} // namespace spmd::partition
