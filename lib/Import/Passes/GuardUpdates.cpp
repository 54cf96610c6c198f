//===- GuardUpdates.cpp - spmd-guard-updates ------------------------------===//
//
// [Note: bad rows on GPUs] A GPU cannot end a step: it reads the nearest row in place of one that is not there, and the
// host finds the bad number when the step is over. So what the step makes of its state is kept only where all numbers
// were good, on all ranks.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Import/Passes.h"
#include "spmd/Transforms/SegmentListener.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_GUARDUPDATESPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct GuardUpdatesPass : StepPass<spmd::impl::GuardUpdatesPassBase<GuardUpdatesPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  Value findBad(func::FuncOp step);
  Value combineRanks(OpBuilder &builder, Location loc, Value worst);
};

} // namespace

/// f32, 0-dim: 1 where a number that `check` looks at is bad, else 0.
static Value findBadOf(aten::CheckIndexOp check) {
  SegmentListener listener;
  listener.setSource(check);
  OpBuilder builder(check, &listener);
  Location loc = check.getLoc();
  RankedTensorType type = typeOf(check.getSelf());
  Type truth = type.clone(builder.getI1Type());
  Value ids = aten::ToCopyOp::create(builder, loc, type.clone(builder.getI64Type()), check.getSelf(),
                                     TypeAttr::get(builder.getI64Type()));
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  Value below = aten::LtScalarOp::create(builder, loc, truth, ids, number(check.getLow()));
  Value above = aten::GeScalarOp::create(builder, loc, truth, ids, number(check.getHigh()));
  Value bad = aten::LogicalOrOp::create(builder, loc, truth, below, above);
  if (std::optional<int64_t> ignored = check.getIgnoreIndex()) {
    Value counts = aten::NeScalarOp::create(builder, loc, truth, ids, number(*ignored));
    bad = aten::LogicalAndOp::create(builder, loc, truth, bad, counts);
  }
  bad =
      aten::ToCopyOp::create(builder, loc, type.clone(builder.getF32Type()), bad, TypeAttr::get(builder.getF32Type()));
  if (type.getRank() == 0)
    return bad;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return aten::AmaxOp::create(builder, loc, RankedTensorType::get({}, builder.getF32Type()), bad,
                              builder.getDenseI64ArrayAttr(dims), builder.getBoolAttr(false));
}

/// With view=local the step is one rank's, and what the others have found counts, too.
Value GuardUpdatesPass::combineRanks(OpBuilder &builder, Location loc, Value worst) {
  if (view != "local" || ranks == 1)
    return worst;
  return aten::C10dAllReduceOp::create(builder, loc, worst.getType(), worst, builder.getStringAttr("max"),
                                       builder.getI64IntegerAttr(ranks));
}

/// i1, 0-dim: whether any number is bad; null when nothing is looked at.
Value GuardUpdatesPass::findBad(func::FuncOp step) {
  SmallVector<aten::CheckIndexOp> checks(step.getOps<aten::CheckIndexOp>());
  if (checks.empty())
    return {};
  SmallVector<Value> found = llvm::map_to_vector(checks, findBadOf);
  SegmentListener listener;
  listener.setSource(checks.back());
  OpBuilder builder(checks.back(), &listener);
  Location loc = checks.back().getLoc();
  Value worst = found.front();
  for (Value other : ArrayRef(found).drop_front())
    worst = aten::MaximumOp::create(builder, loc, worst.getType(), worst, other);
  worst = combineRanks(builder, loc, worst);
  return aten::GtScalarOp::create(builder, loc, RankedTensorType::get({}, builder.getI1Type()), worst,
                                  builder.getI64IntegerAttr(0));
}

LogicalResult GuardUpdatesPass::runOnStep(func::FuncOp step) {
  Value bad = enable ? findBad(step) : Value();
  if (!bad)
    return success();
  Operation *end = step.getBody().front().getTerminator();
  SegmentListener listener;
  OpBuilder builder(end, &listener);
  for (OpOperand &result : end->getOpOperands()) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, result.getOperandNumber()));
    std::optional<unsigned> argument = update ? findArg(step, update.getArg()) : std::nullopt;
    Operation *producer = result.get().getDefiningOp();
    if (!argument || !producer)
      continue;
    listener.setSource(producer);
    auto kept = aten::WhereSelfOp::create(builder, producer->getLoc(), result.get().getType(), bad,
                                          step.getArgument(*argument), result.get());
    result.set(kept);
  }
  return success();
}
