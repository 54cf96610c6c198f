//===- VerifySchedule.cpp - spmd-verify-schedule --------------------------===//

#include "Views.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Numbers in comments are those of the pass description.
static LogicalResult verifyStart(CollectiveOpInterface op) {
  // 1
  if (!op.isStart())
    return op->emitError() << "'" << op->getName() << "' is synchronous (" << describeSource(op.getLoc())
                           << "); run spmd-start-collectives";
  // 2
  auto waits = llvm::count_if(op->getUsers(), llvm::IsaPred<WaitOp>);
  if (waits != 1) {
    InFlightDiagnostic diag = op->emitError() << "'" << op->getName() << "' is waited for " << waits
                                              << " times, expected once (" << describeSource(op.getLoc()) << ")";
    for (Operation *user : op->getUsers())
      diag.attachNote(user->getLoc()) << "here";
    return diag;
  }
  // 5
  Stream expected = getNaturalStream(op.getCollectiveKind(), op.getUnitAttr() != nullptr);
  if (op.getStreamKind() != expected)
    return op->emitError() << "'" << op->getName() << "' is on stream " << stringifyStream(op.getStreamKind())
                           << ", it belongs on " << stringifyStream(expected)
                           << ": gathers, and only they, are on gather, small all_reduces on scalar, other reductions "
                              "on reduce";
  return success();
}

static LogicalResult verifyRelease(ReleaseOp op) {
  // 3
  auto wait = op.getValue().getDefiningOp<WaitOp>();
  if (!wait || !wait.getHandle().getDefiningOp<AllGatherStartOp>())
    return op.emitError() << "releases a value that was not gathered (" << describeSource(op.getLoc()) << ")";
  for (Operation *user : op.getValue().getUsers())
    if (isa<ReleaseOp>(user) && user != op) {
      InFlightDiagnostic diag = op.emitError()
                                << "releases a value that is released twice (" << describeSource(op.getLoc()) << ")";
      diag.attachNote(user->getLoc()) << "the other release is here";
      return diag;
    }
  // 4
  Operation *last = getLastReader(op.getValue());
  if (last && op->isBeforeInBlock(last)) {
    InFlightDiagnostic diag = last->emitError()
                              << "'" << last->getName() << "' reads a gathered buffer after its release ("
                              << describeSource(last->getLoc()) << ")";
    diag.attachNote(op.getLoc()) << "the release is here";
    return diag;
  }
  return success();
}

/// 3: a gathered buffer of a unit is released, unless the step returns it.
static LogicalResult verifyReleased(AllGatherStartOp op) {
  if (!op.getUnitAttr() || !(isa<BlockArgument>(op.getInput()) || op.getInput().getDefiningOp<SliceOp>()))
    return success();
  Value value = (*op->getUsers().begin())->getResult(0);
  Operation *last = getLastReader(value);
  if (llvm::any_of(value.getUsers(), llvm::IsaPred<ReleaseOp>) || !last || last->hasTrait<OpTrait::IsTerminator>())
    return success();
  return op.emitError() << "gathered buffer of unit " << op.getUnitAttr() << " is never released ("
                        << describeSource(op.getLoc()) << ")";
}

namespace {
struct VerifySchedulePass : StepPass<spmd::impl::VerifyScheduleBase<VerifySchedulePass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    bool holds = true;
    for (Operation &op : step.getBody().front()) {
      LogicalResult result = success();
      if (auto collective = dyn_cast<CollectiveOpInterface>(op))
        result = verifyStart(collective);
      if (auto release = dyn_cast<ReleaseOp>(op))
        result = verifyRelease(release);
      if (auto gather = dyn_cast<AllGatherStartOp>(op); gather && succeeded(result))
        result = verifyReleased(gather);
      holds &= succeeded(result);
    }
    // 6: what held before collectives were started. Kernels have no states any more.
    if (hasStates(step) &&
        (failed(verifyStates(step)) || failed(verifyUnits(step)) || failed(verifyRecordedValues(step))))
      holds = false;
    markAllAnalysesPreserved();
    return success(holds);
  }
};
} // namespace
