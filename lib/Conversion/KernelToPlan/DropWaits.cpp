//===- DropWaits.cpp - Waits that order nothing are left out --------------===//

#include "PlaceBuffers.h"
#include "PlanPass.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Runtime/Core/IdleWaits.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace spmd {
#define GEN_PASS_DEF_DROPWAITSPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct DropWaitsPass : PlanPass<spmd::impl::DropWaitsPassBase<DropWaitsPass>> {
  bool isNeeded(plan::ProgramOp program) override { return !program.getOps<plan::WaitOp>().empty(); }
  LogicalResult runOnPlan(plan::ProgramOp program, const runtime::Plan &plan,
                          const runtime::Manifest &manifest) override;
};
} // namespace

LogicalResult DropWaitsPass::runOnPlan(plan::ProgramOp program, const runtime::Plan &plan,
                                       const runtime::Manifest &manifest) {
  std::vector<int32_t> idle = runtime::findIdleWaits(manifest, plan);
  if (idle.empty())
    return success();

  // Who awaits a wait that goes awaits the command before it, and with it all that the stream has done by then.
  SmallVector<plan::CommandOpInterface> commands(program.getOps<plan::CommandOpInterface>());
  std::map<plan::Stream, Value> last;
  DenseSet<int32_t> isIdle(idle.begin(), idle.end());
  for (auto [id, command] : llvm::enumerate(commands)) {
    Value &before = last[command.getStream()];
    if (!isIdle.contains(static_cast<int32_t>(id))) {
      before = command.getEvent();
      continue;
    }
    if (before) // where there is none, what awaits it orders nothing either, and goes, too
      command.getEvent().replaceAllUsesWith(before);
  }
  for (int32_t id : llvm::reverse(idle))
    commands[static_cast<size_t>(id)]->erase();
  setPeak(program);
  return success();
}
