//===- MarkIteration.cpp - spmd-mark-iteration ----------------------------===//

#include "PlanIterations.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/Builders.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"

namespace spmd {
#define GEN_PASS_DEF_MARKITERATIONPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

template <typename OpT>
static LogicalResult markIteration(OpT op) {
  std::string why;
  std::optional<FoundIteration> found = findIteration(op, why);
  if (!found)
    return op.emitOpError("has no iteration that stands for others: ") << why;
  op.setIterationAttr(DenseI64ArrayAttr::get(op.getContext(), {found->begin, found->end}));
  return success();
}

namespace {
struct MarkIterationPass : spmd::impl::MarkIterationPassBase<MarkIterationPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(kIterationsAttr))
      return markAllAnalysesPreserved();
    plan::ProgramOp program = getProgram(module);
    if (!program || failed(markIteration(program)))
      return signalPassFailure();
    for (auto dataflow : module.getOps<plan::DataflowOp>())
      if (failed(markIteration(dataflow)))
        return signalPassFailure();
    // That iterations are alike, with their bytes, is the runtime's to say.
    if (failed(translatePlan(program)))
      signalPassFailure();
  }
};
} // namespace
