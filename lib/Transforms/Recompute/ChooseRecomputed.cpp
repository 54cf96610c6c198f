//===- ChooseRecomputed.cpp - spmd-choose-recomputed ----------------------===//

#include "spmd/Transforms/Recompute/Passes.h"
#include "spmd/Transforms/Recompute/Recomputable.h"
#include "spmd/Transforms/StepPass.h"

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
    std::vector<Recomputable> values = findRecomputable(step);
    markRecomputed(ArrayRef(values).take_front(count));
    return success();
  }
};

} // namespace
