//===- AdvanceLastReduction.cpp - spmd-advance-last-reduction -------------===//

#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace spmd {
#define GEN_PASS_DEF_ADVANCELASTREDUCTION
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct AdvanceLastReductionPass : StepPass<spmd::impl::AdvanceLastReductionBase<AdvanceLastReductionPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;
};
} // namespace

/// The ops between `first` and `last` that `last` needs.
static llvm::SmallPtrSet<Operation *, 32> getNeeded(Operation *first, Operation *last) {
  llvm::SmallPtrSet<Operation *, 32> needed{last};
  for (Operation *op = last->getPrevNode(); op != first; op = op->getPrevNode())
    if (llvm::any_of(op->getUsers(), [&](Operation *user) {
          return needed.contains(op->getBlock()->findAncestorOpInBlock(*user));
        }))
      needed.insert(op);
  return needed;
}

LogicalResult AdvanceLastReductionPass::runOnStep(func::FuncOp step) {
  if (!enable)
    return success();
  SmallVector<ReduceScatterOp> reductions;
  for (auto op : step.getBody().front().getOps<ReduceScatterOp>())
    if (op.getUnitAttr())
      reductions.push_back(op);
  // Before the third from the end is what other reductions and, in a step of several microbatches, other backward passes
  // wait for. Reductions of several backward passes have the optimizer and the next forward between them.
  if (reductions.size() < 3)
    return success();
  Operation *first = reductions[reductions.size() - 3], *last = reductions.back();
  if (getSegment(first) != getSegment(last))
    return success();
  llvm::SmallPtrSet<Operation *, 32> needed = getNeeded(first, last);
  Operation *place = last;
  for (Operation *op = first->getNextNode(); op != last;) {
    Operation *next = op->getNextNode();
    if (!needed.contains(op)) {
      op->moveAfter(place);
      place = op;
    }
    op = next;
  }
  return success();
}
