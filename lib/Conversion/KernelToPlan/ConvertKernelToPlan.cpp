//===- ConvertKernelToPlan.cpp - Values become bytes, ops become commands -===//

#include "BufferAssignment.h"
#include "CommandEmitter.h"
#include "Dataflow.h"
#include "KernelFunctions.h"
#include "PlaceBuffers.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_CONVERTKERNELTOPLANPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct ConvertKernelToPlanPass : spmd::impl::ConvertKernelToPlanPassBase<ConvertKernelToPlanPass> {
  void runOnOperation() override;
};
} // namespace

/// Ranks of the mesh; 1 without one.
static int64_t getNumRanks(ModuleOp module) {
  int64_t ranks = 1;
  for (auto mesh : module.getOps<MeshOp>())
    ranks *= mesh.getNumRanks();
  return ranks;
}

void ConvertKernelToPlanPass::runOnOperation() {
  ModuleOp module = getOperation();
  func::FuncOp step = getStep(module);
  if (!step)
    return signalPassFailure();
  if (!step.getBody().hasOneBlock()) {
    step.emitOpError("has ") << step.getBody().getBlocks().size() << " blocks, a plan needs one";
    return signalPassFailure();
  }
  FailureOr<BufferAssignment> assignment = BufferAssignment::compute(step);
  if (failed(assignment))
    return signalPassFailure();

  OpBuilder builder(step);
  // The order of the streams is that of the artifact format; communicators are named after their streams.
  ArrayAttr streams = builder.getStrArrayAttr({"compute", "gather", "reduce", "scalar"});
  ArrayAttr communicators = builder.getStrArrayAttr({"gather", "reduce", "scalar"});
  auto program = plan::ProgramOp::create(
      builder, step.getLoc(), "train_step", getNumRanks(module), streams, communicators,
      /*state_bytes=*/0, /*transient_bytes=*/0, /*lower_bound=*/0, builder.getDictionaryAttr({}));
  program.getBody().emplaceBlock();
  if (failed(emitCommands(step, *assignment, program)))
    return signalPassFailure();
  addDataflow(step);
  placeBuffers(program);
  addKernelFunctions(step);
  step.erase();
}
