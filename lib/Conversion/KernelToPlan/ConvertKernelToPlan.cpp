//===- ConvertKernelToPlan.cpp - Values become bytes, ops become commands -===//

#include "BufferAssignment.h"
#include "CommandEmitter.h"
#include "Communicators.h"
#include "Dataflow.h"
#include "KernelFunctions.h"
#include "PlaceBuffers.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

namespace spmd {
#define GEN_PASS_DEF_CONVERTKERNELTOPLANPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct ConvertKernelToPlanPass : StepPass<spmd::impl::ConvertKernelToPlanPassBase<ConvertKernelToPlanPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;
};
} // namespace

/// Ranks of the mesh; 1 without one.
static int64_t getNumRanks(ModuleOp module) {
  int64_t ranks = 1;
  for (auto mesh : module.getOps<MeshOp>())
    ranks *= mesh.getNumRanks();
  return ranks;
}

/// Adds the communicators, in the order of their streams. On one axis there is one for each stream; on more, those that
/// are used.
static void addCommunicators(func::FuncOp step, plan::ProgramOp program) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
  auto meshes = step->getParentOfType<ModuleOp>().getOps<MeshOp>();
  bool isOneAxis = llvm::all_of(meshes, [](MeshOp mesh) { return mesh.getAxisNames().size() == 1; });
  for (Stream stream : {Stream::gather, Stream::reduce, Stream::scalar}) {
    llvm::MapVector<StringAttr, ArrayAttr> used;
    if (isOneAxis)
      used[builder.getStringAttr(stringifyStream(stream))] = ArrayAttr();
    else
      step.walk([&](CollectiveOpInterface op) {
        if (op.getStreamKind() == stream)
          used[builder.getStringAttr(getCommunicatorName(op))] =
              getPartialAxes(op).empty() ? ArrayAttr() : op.getAxesAttr();
      });
    for (auto &[name, axes] : used)
      plan::CommunicatorOp::create(builder, step.getLoc(), name, axes, /*max_blocks=*/IntegerAttr());
  }
}

/// Lets collectives go before what computes, and hold at most `blocks` of a device.
static void preferCollectives(plan::ProgramOp program, int64_t blocks) {
  llvm::SmallDenseSet<StringAttr> communicators;
  llvm::SmallSet<plan::Stream, 4> streams;
  for (auto collective : program.getOps<plan::CollectiveOpInterface>()) {
    auto command = cast<plan::CommandOpInterface>(collective.getOperation());
    communicators.insert(command.getCommunicator().getAttr());
    streams.insert(command.getStream());
  }
  OpBuilder builder(program.getContext());
  for (auto communicator : program.getOps<plan::CommunicatorOp>()) {
    if (communicators.contains(communicator.getSymNameAttr()))
      communicator.setMaxBlocks(blocks);
    builder.setInsertionPointAfter(communicator);
  }
  for (uint32_t stream = 0; stream <= plan::getMaxEnumValForStream(); ++stream)
    if (auto kind = static_cast<plan::Stream>(stream); streams.contains(kind))
      plan::StreamOp::create(builder, program.getLoc(), kind, /*priority=*/1);
}

LogicalResult ConvertKernelToPlanPass::runOnStep(func::FuncOp step) {
  if (!step.getBody().hasOneBlock())
    return step.emitOpError("has ") << step.getBody().getBlocks().size() << " blocks, a plan needs one";
  FailureOr<BufferAssignment> assignment = BufferAssignment::compute(step, gemmWorkspace);
  if (failed(assignment))
    return failure();

  OpBuilder builder(step);
  auto program =
      plan::ProgramOp::create(builder, step.getLoc(), "train_step", getNumRanks(getOperation()), /*state_bytes=*/0,
                              /*transient_bytes=*/0, /*lower_bound=*/0, builder.getDictionaryAttr({}),
                              /*iteration=*/DenseI64ArrayAttr());
  program.getBody().emplaceBlock();
  addCommunicators(step, program);
  if (failed(emitCommands(step, *assignment, program)))
    return failure();
  if (collectiveBlocks)
    preferCollectives(program, collectiveBlocks);
  addDataflow(step);
  placeBuffers(program);
  addKernelFunctions(step);
  step.erase();
  return success();
}
