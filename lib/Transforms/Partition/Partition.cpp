//===- Partition.cpp - spmd-partition -------------------------------------===//

#include "KeepSums.h"
#include "Partitioner.h"

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Aten/AtenRanks.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/StringSet.h"

namespace spmd {
#define GEN_PASS_DEF_PARTITION
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Marks the units that nothing reduces, because no gradient of theirs is partial; from here on a reduction that is
/// missing is a mistake, which the certificate of the plan finds.
static void markWholeGradients(ModuleOp module) {
  llvm::SmallPtrSet<Attribute, 8> reduced;
  module.walk([&](CollectiveOpInterface op) {
    if (op.getUnitAttr() && !isa<AllGatherOp>(op))
      reduced.insert(op.getUnitAttr().getAttr());
  });
  for (auto unit : module.getOps<ShardUnitOp>())
    if (!reduced.contains(unit.getSymNameAttr()))
      unit->setAttr(kWholeGradientAttr, UnitAttr::get(module.getContext()));
}

/// PyTorch's SyncBatchNorm that trains has the statistics of all ranks, and a rank's own step those of its rows where
/// it was captured without others.
static LogicalResult checkSynchronized(func::FuncOp step) {
  llvm::StringSet<> synchronized;
  for (auto gather : step.getBody().front().getOps<aten::C10dAllGatherOp>())
    synchronized.insert(getModulePath(gather.getLoc()));
  for (auto tree : step->getParentOfType<ModuleOp>().getOps<ModuleTreeOp>())
    for (auto entry : tree.getBody().getOps<TreeModuleOp>()) {
      if (entry.getClassName() != "torch.nn.modules.batchnorm.SyncBatchNorm" || synchronized.contains(entry.getPath()))
        continue;
      bool trains = llvm::any_of(llvm::seq(step.getNumArguments()), [&](unsigned arg) {
        auto buffer = getArgRole<BufferAttr>(step, arg);
        auto name = buffer ? StringAttr::get(step.getContext(), buffer.getName()) : StringAttr();
        return name && llvm::is_contained(entry.getBuffers(), name) && findUpdate(step, arg);
      });
      if (trains || entry.getBuffers().empty())
        return step.emitError()
               << "module '" << entry.getPath()
               << "' is a SyncBatchNorm, which needs the statistics of all ranks; with view=local each rank has only "
                  "its own, unless the step is captured in a process group of all ranks (torchrun); use such a "
                  "group, BatchNorm, or view=global, where every batch norm has the statistics of the whole batch";
    }
  return success();
}

namespace {
struct PartitionPass : StepPass<spmd::impl::PartitionBase<PartitionPass>> {
  using StepPass::StepPass;

  LogicalResult runOnStep(func::FuncOp func) override {
    ModuleOp module = getOperation();
    if (view != "global" && view != "local")
      return module.emitError() << "view '" << view << "' is not one of: global, local";
    if (accumulate != "sharded" && accumulate != "scattered" && accumulate != "unsharded")
      return module.emitError() << "accumulate '" << accumulate << "' is not one of: sharded, scattered, unsharded";
    if (accumulate == "scattered")
      partition::addToSumsLast(func);
    FailureOr<partition::Step> step = partition::Step::read(func, accumulate == "unsharded");
    if (failed(step) || failed(step->checkPrecision()))
      return failure();
    step->scattersSums = accumulate == "scattered" && step->ranks > 1;
    step->gradientDivideFactor = gradientDivideFactor > 0 ? gradientDivideFactor : static_cast<double>(step->ranks);
    // One rank's step is its own, but for a factor.
    step->isLocalView = view == "local" && (step->ranks > 1 || step->gradientDivideFactor != 1);
    if ((step->isLocalView && failed(checkSynchronized(func))) || failed(partition::Partitioner::run(*step)))
      return failure();
    markWholeGradients(module);
    return success();
  }
};
} // namespace
