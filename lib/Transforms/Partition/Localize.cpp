//===- Localize.cpp - replicated values of which only shards are used -----===//
//
// [Note: localization]
// Masks, positions and constants start replicated; used with sharded values they
// are sliced. When all uses of a value slice it alike, its op is made to compute
// the shard, on slices of its own operands, and so on upward. Always right without:
// a slice is free. With it no rank keeps what it does not use.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;
using spmd::aten::AtenOpInterface;
using spmd::aten::ShardingRule;

namespace spmd::partition {

/// The state each operand needs so that the op, now replicated, computes `want`;
/// nothing when the rule does not say.
static std::optional<SmallVector<AxisState>> getOperandStates(Operation *op, AxisState want) {
  auto iface = cast<aten::ShardingOpInterface>(op);
  SmallVector<AxisState> states(op->getNumOperands());
  if (iface.isViewLike()) {
    std::optional<AxisState> mapped =
        mapThroughView(getGlobalShape(op->getResult(0).getType()), want, getGlobalShape(op->getOperand(0).getType()));
    if (mapped)
      states[0] = *mapped;
    return mapped ? std::optional(states) : std::nullopt;
  }
  FailureOr<ShardingRule> rule = iface.getShardingRule();
  // What looks at padding is masked where it is partitioned; a slice of its operands is not.
  if (failed(rule) || rule->fillsPadding)
    return std::nullopt;
  int64_t factor = rule->results[0].dims[want.dim];
  if (factor < 0 || rule->results[0].getStep(want.dim) != 1)
    return std::nullopt;
  for (auto [index, value] : llvm::enumerate(rule->operands)) {
    if (llvm::count(value.dims, factor) > 1)
      return std::nullopt;
    auto *found = llvm::find(value.dims, factor);
    if (found != value.dims.end() && value.getStep(found - value.dims.begin()) != 1)
      return std::nullopt;
    if (found != value.dims.end())
      states[index] = AxisState::shard(found - value.dims.begin(), want.pre, want.chunk);
  }
  return states;
}

/// Makes the producer of a sliced value compute the slice. `all` are the slices
/// that use it.
static bool localize(OpBuilder &builder, ArrayRef<SliceOp> all, SmallVectorImpl<Operation *> &work) {
  SliceOp slice = all.front();
  Operation *op = slice.getInput().getDefiningOp();
  AxisState want = *getState(slice.getType());
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(slice, slice.getMeshAttr());
  if (!want.isShard() || (mesh && isAlongTensor(slice, mesh)))
    return false;
  std::optional<SmallVector<AxisState>> states = getOperandStates(op, want);
  if (!states)
    return false;
  // Try on a copy: a size attribute may not allow it.
  Operation *copy = op->cloneWithoutRegions();
  builder.setInsertionPoint(op);
  builder.insert(copy);
  if (failed(cast<aten::ShardingOpInterface>(copy).localize({slice.getType()}))) {
    copy->erase();
    return false;
  }
  builder.setInsertionPoint(copy);
  for (auto [operand, state] : llvm::zip(copy->getOpOperands(), *states)) {
    if (!state.isShard())
      continue;
    auto type = typeOf(operand.get());
    auto global = RankedTensorType::get(type.getShape(), type.getElementType());
    auto made = SliceOp::create(builder, slice.getLoc(), getLocalType(global, state), operand.get(),
                                slice.getMeshAttr(), slice.getAxesAttr(), builder.getI64IntegerAttr(state.dim),
                                builder.getI64IntegerAttr(state.pre), builder.getI64IntegerAttr(state.chunk));
    if (Attribute segment = op->getAttr(kSegmentAttr))
      made->setAttr(kSegmentAttr, segment);
    operand.set(made);
    work.push_back(made);
  }
  copy->getResult(0).setType(slice.getType());
  for (SliceOp use : all) {
    use.getResult().replaceAllUsesWith(copy->getResult(0));
    use.erase();
  }
  op->erase();
  return true;
}

void localizeSlices(func::FuncOp func) {
  OpBuilder builder(func.getContext());
  SmallVector<Operation *> work;
  func.walk([&](SliceOp slice) { work.push_back(slice); });
  llvm::DenseSet<Operation *> gone;
  while (!work.empty()) {
    Operation *next = work.pop_back_val();
    if (gone.contains(next))
      continue;
    auto slice = cast<SliceOp>(next);
    Operation *op = slice.getInput().getDefiningOp();
    if (!op || !isa<AtenOpInterface>(op) || op->getNumResults() != 1)
      continue;
    SmallVector<SliceOp> all;
    bool alike = true;
    for (Operation *user : op->getUsers()) {
      auto other = dyn_cast<SliceOp>(user);
      alike = alike && other && other.getType() == slice.getType();
      if (other)
        all.push_back(other);
    }
    if (!alike)
      continue;
    size_t before = work.size();
    if (localize(builder, all, work))
      gone.insert(all.begin(), all.end());
    // A new slice may have the address of one that is gone.
    for (Operation *made : llvm::drop_begin(work, before))
      gone.erase(made);
  }
}

} // namespace spmd::partition
