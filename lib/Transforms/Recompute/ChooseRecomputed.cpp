//===- ChooseRecomputed.cpp - spmd-choose-recomputed ----------------------===//

#include "SavedValues.h"
#include "spmd/Transforms/Recompute/Passes.h"
#include "spmd/Transforms/Recompute/Recomputable.h"
#include "spmd/Transforms/StepPass.h"
#include "mlir/IR/Builders.h"

namespace spmd {
#define GEN_PASS_DEF_CHOOSERECOMPUTED
#include "spmd/Transforms/Recompute/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct ChooseRecomputedPass : StepPass<spmd::impl::ChooseRecomputedBase<ChooseRecomputedPass>> {
  using StepPass::StepPass;

  LogicalResult runOnStep(func::FuncOp step) override {
    if (count < 0)
      return getOperation().emitError() << "count is " << static_cast<int64_t>(count) << ", expected 0 or more";
    if (count == 0)
      return success();
    int64_t left = count;
    for (const Recomputable &one : findRecomputable(step)) {
      if (left-- == 0)
        break;
      one.value.getOwner()->setAttr(kRecomputeAttr, UnitAttr::get(&getContext()));
    }
    return success();
  }
};

} // namespace
