//===- StartCollectives.cpp - spmd-start-collectives ----------------------===//

#include "BlockOrder.h"
#include "Views.h"
#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_STARTCOLLECTIVES
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct StartCollectivesPass : StepPass<spmd::impl::StartCollectivesBase<StartCollectivesPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  WaitOp split(CollectiveOpInterface op);
  void prefetchGathers(ArrayRef<WaitOp> gathers);
  void boundGradients(ArrayRef<WaitOp> scatters);
  void sinkSumsAcross(ArrayRef<WaitOp> scatters);
  int64_t getPrefetch(Operation *start);
  void bringCast(Operation *start);
  bool isBefore(Operation *a, Operation *b) const { return order->isBefore(a, b); }

  std::optional<BlockOrder> order; // of the step, while the pass runs
};

} // namespace

/// Replaces the op by a start in its place and a wait before its first use.
WaitOp StartCollectivesPass::split(CollectiveOpInterface op) {
  OpBuilder builder(op);
  Operation *start = createStart(builder, op);
  order->place(start);
  Operation *first = op->getBlock()->getTerminator();
  for (Operation *user : op->getUsers())
    if (isBefore(user, first))
      first = user;
  builder.setInsertionPoint(first);
  auto wait = WaitOp::create(builder, op.getLoc(), op->getResultTypes(), start->getResult(0));
  order->place(wait);
  if (Attribute segment = op->getAttr(kSegmentAttr)) {
    start->setAttr(kSegmentAttr, segment);
    wait->setAttr(kSegmentAttr, segment);
  }
  op->replaceAllUsesWith(wait.getResults());
  order->erase(op);
  return wait;
}

/// The chunk that is gathered, before the cast that it travels in; of a piece that a group keeps, what it was cut from.
static Value getGatheredChunk(Value sent) {
  if (auto piece = sent.getDefiningOp<SliceOp>())
    if (auto whole = piece.getInput().getDefiningOp<WaitOp>())
      if (auto start = whole.getHandle().getDefiningOp<AllGatherStartOp>())
        return getGatheredChunk(start.getInput());
  auto narrow = sent.getDefiningOp<aten::ToCopyOp>();
  return narrow ? narrow.getSelf() : sent;
}

/// Of a unit's gathered buffer, as spmd-reshard-to-groups cuts it.
static bool isPieceOfUnit(Value sent) {
  auto piece = sent.getDefiningOp<SliceOp>();
  auto gather = piece ? piece.getInput().getDefiningOp<AllGatherOp>() : AllGatherOp();
  auto wait = piece ? piece.getInput().getDefiningOp<WaitOp>() : WaitOp();
  return (gather && gather.getUnitAttr()) || (wait && wait.getHandle().getDefiningOp<AllGatherStartOp>());
}

/// Moves a cast that only this start reads to it, so that the cast chunk lives no longer than the gather.
void StartCollectivesPass::bringCast(Operation *start) {
  auto narrow = start->getOperand(0).getDefiningOp<aten::ToCopyOp>();
  if (narrow && narrow->hasOneUse())
    order->moveBefore(narrow, start);
}

/// How many gathers ahead: what the unit says, or else the option.
int64_t StartCollectivesPass::getPrefetch(Operation *start) {
  auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(start, cast<AllGatherStartOp>(start).getUnitAttr());
  return unit ? unit.getPrefetch().value_or(prefetch) : static_cast<int64_t>(prefetch);
}

/// Puts the start of each gather of a unit `prefetch` gathers before its wait, and
/// a release after its last use. What is gathered is an argument or its cast, so a start may
/// stand anywhere above its wait, or a piece, below which it may; but not where the unit's buffer of an earlier
/// gather is still in use, or there would be two of them.
void StartCollectivesPass::prefetchGathers(ArrayRef<WaitOp> gathers) {
  llvm::DenseMap<Value, ReleaseOp> releases;
  for (auto [index, gather] : llvm::enumerate(gathers)) {
    WaitOp wait = gather;
    Operation *start = wait.getHandle().getDefiningOp();
    int64_t distance = getPrefetch(start);
    int64_t ahead = static_cast<int64_t>(index) - distance;
    if (distance == 0)
      order->moveBefore(start, wait);
    else if (ahead >= 0)
      order->moveAfter(start, gathers[ahead]);
    else
      order->moveBefore(start, &wait->getBlock()->front());
    ReleaseOp &previous = releases[getGatheredChunk(start->getOperand(0))];
    if (previous && isBefore(start, previous) && isBefore(previous, wait))
      order->moveAfter(start, previous);
    // A piece is cut once forward has read what it is of.
    if (Operation *piece = start->getOperand(0).getDefiningOp<SliceOp>(); piece && isBefore(start, piece))
      order->moveAfter(start, piece);
    bringCast(start);

    Value value = wait->getResult(0);
    Operation *last = getLastReader(value, [&](Operation *a, Operation *b) { return isBefore(a, b); });
    OpBuilder builder(wait);
    builder.setInsertionPointAfter(last ? last : wait);
    auto release = ReleaseOp::create(builder, wait.getLoc(), value);
    order->place(release);
    Attribute segment = (last ? last : wait)->getAttr(kSegmentAttr);
    if (segment)
      release->setAttr(kSegmentAttr, segment);
    previous = release;
  }
}

/// [Note: gradients in flight] Until computation has waited for a unit's reduction, nothing proves that its unsharded
/// gradients have been read, and they keep their bytes. So the reduction of one unit is waited for when that of the
/// next one starts: it has had a unit's whole backward pass to end, and no more than two units' gradients are there at
/// once.
void StartCollectivesPass::boundGradients(ArrayRef<WaitOp> scatters) {
  for (size_t i = 1; i < scatters.size(); ++i) {
    WaitOp wait = scatters[i - 1], next = scatters[i];
    Operation *start = next.getHandle().getDefiningOp();
    if (isBefore(start, wait))
      order->moveAfter(wait, start);
  }
}

/// The all-reduce that adds up a scattered sum along the axes along which chunks are the same; null without one.
static AllReduceStartOp getSumAcross(WaitOp scatter) {
  for (Operation *user : scatter->getUsers())
    if (auto sum = dyn_cast<AllReduceStartOp>(user))
      return sum;
  return nullptr;
}

/// The sum of a unit's gradients across the first axis of a mesh reads what the reduce-scatter gives, which computation
/// would have to wait for right there. So it starts when the reduction of the next unit has started, and that of the
/// last unit where the first of these sums is waited for.
void StartCollectivesPass::sinkSumsAcross(ArrayRef<WaitOp> scatters) {
  Operation *firstUse = nullptr;
  for (WaitOp scatter : scatters)
    if (AllReduceStartOp sum = getSumAcross(scatter))
      for (Operation *wait : sum.getHandle().getUsers())
        if (!firstUse || isBefore(wait, firstUse))
          firstUse = wait;
  for (size_t i = 0; i < scatters.size(); ++i) {
    WaitOp scatter = scatters[i];
    AllReduceStartOp sum = getSumAcross(scatter);
    if (!sum)
      continue;
    Operation *next = i + 1 < scatters.size() ? WaitOp(scatters[i + 1]).getHandle().getDefiningOp() : nullptr;
    if (next && isBefore(next, firstUse))
      order->moveAfter(scatter, next);
    else if (isBefore(scatter, firstUse))
      order->moveBefore(scatter, firstUse);
    order->moveAfter(sum, scatter);
  }
}

/// A value that the step returns and that rearranges a unit's gathered buffer gets memory of its own: returning it would
/// keep the buffer, and kernels copy it in any case.
static void copyReturnedViews(Block &body) {
  Operation *end = body.getTerminator();
  OpBuilder builder(end);
  for (OpOperand &returned : end->getOpOperands()) {
    Value value = returned.get();
    bool isRearranged = false;
    for (Operation *op = value.getDefiningOp(); op && isViewOp(op); op = value.getDefiningOp()) {
      isRearranged |= !isa<UnpackOp, aten::ViewOp>(op);
      value = op->getOperand(0);
    }
    auto gather = value.getDefiningOp<AllGatherOp>();
    if (!gather || !gather.getUnitAttr() || !isRearranged)
      continue;
    Operation *last = returned.get().getDefiningOp();
    auto copy = aten::CloneOp::create(builder, last->getLoc(), returned.get().getType(), returned.get());
    if (Attribute segment = last->getAttr(kSegmentAttr))
      copy->setAttr(kSegmentAttr, segment);
    returned.set(copy);
  }
}

LogicalResult StartCollectivesPass::runOnStep(func::FuncOp step) {
  if (prefetch < 0 || prefetch > 1)
    return getOperation().emitError() << "prefetch is " << static_cast<int64_t>(prefetch) << ", expected 0 or 1";
  Block &body = step.getBody().front();
  copyReturnedViews(body);
  order.emplace(body);
  SmallVector<CollectiveOpInterface> all;
  for (auto op : body.getOps<CollectiveOpInterface>())
    if (!op.isStart())
      all.push_back(op);
  SmallVector<WaitOp> gathers, scatters;
  for (CollectiveOpInterface op : all) {
    bool ofArgument = op.getCollectiveKind() == CollectiveKind::AllGather && op.getUnitAttr() && !op->use_empty() &&
                      (isa<BlockArgument>(getGatheredChunk(op->getOperand(0))) || isPieceOfUnit(op->getOperand(0)));
    bool isScatter = op.getCollectiveKind() == CollectiveKind::ReduceScatter && op.getUnitAttr();
    WaitOp wait = split(op);
    if (isScatter)
      scatters.push_back(wait);
    if (ofArgument)
      gathers.push_back(wait);
  }
  llvm::sort(gathers, [&](WaitOp a, WaitOp b) { return isBefore(a, b); });
  // A buffer that the step returns is never free.
  llvm::erase_if(gathers, [&](WaitOp wait) {
    Operation *last = getLastReader(wait->getResult(0), [&](Operation *a, Operation *b) { return isBefore(a, b); });
    return last && last->hasTrait<OpTrait::IsTerminator>();
  });
  prefetchGathers(gathers);
  boundGradients(scatters);
  sinkSumsAcross(scatters);
  order.reset();
  return success();
}
