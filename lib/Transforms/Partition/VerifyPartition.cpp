//===- VerifyPartition.cpp - spmd-verify-partition ------------------------===//

#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "spmd/Transforms/StepPass.h"

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
struct VerifyPartitionPass : StepPass<spmd::impl::VerifyPartitionBase<VerifyPartitionPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    markAllAnalysesPreserved();
    return success(succeeded(verifySynchronous(step)) && succeeded(verifyStates(step)) &&
                   succeeded(verifyUnits(step)) && succeeded(verifyRecordedValues(step)));
  }
};
} // namespace
