//===- VerifyPartition.cpp - spmd-verify-partition ------------------------===//

#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Partition/Verify.h"

namespace spmd {
#define GEN_PASS_DEF_VERIFYPARTITION
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Whether a collective has been started is spmd-verify-schedule's to check.
static LogicalResult verifySynchronous(func::FuncOp step) {
  for (Operation &op : step.getBody().front())
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<HandleType>))
      return op.emitError() << "'" << op.getName() << "' (" << describeSource(op.getLoc())
                            << ") starts a collective; a scheduled step is spmd-verify-schedule's to check";
  return success();
}

namespace {
struct VerifyPartitionPass : spmd::impl::VerifyPartitionBase<VerifyPartitionPass> {
  void runOnOperation() override {
    func::FuncOp step = getStep(getOperation());
    if (!step || failed(verifySynchronous(step)) || failed(verifyStates(step)) || failed(verifyUnits(step)) ||
        failed(verifyRecordedValues(step)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
