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
#include "llvm/ADT/MapVector.h"

namespace spmd {
#define GEN_PASS_DEF_CONVERTKERNELTOPLANPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct ConvertKernelToPlanPass : StepPass<spmd::impl::ConvertKernelToPlanPassBase<ConvertKernelToPlanPass>> {
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

/// The names of all communicators, after their streams, and the axes of those that do not connect all ranks. On one axis
/// there is one for each stream; on more, those that are used.
static std::pair<ArrayAttr, DictionaryAttr> listCommunicators(ModuleOp module, func::FuncOp step) {
  Builder builder(module.getContext());
  SmallVector<StringRef> streams = {"gather", "reduce", "scalar"};
  bool isOneAxis = llvm::all_of(module.getOps<MeshOp>(), [](MeshOp mesh) { return mesh.getAxisNames().size() == 1; });
  if (isOneAxis)
    return {builder.getStrArrayAttr(streams), DictionaryAttr()};
  llvm::MapVector<StringAttr, ArrayAttr> used;
  for (StringRef stream : streams)
    step.walk([&](CollectiveOpInterface op) {
      if (getStreamName(op) == stream)
        used[builder.getStringAttr(getCommunicatorName(op))] = getPartialAxes(op).empty() ? ArrayAttr() : op.getAxesAttr();
    });
  SmallVector<Attribute> names;
  NamedAttrList axes;
  for (auto &[name, along] : used) {
    names.push_back(name);
    if (along)
      axes.set(name, along);
  }
  return {builder.getArrayAttr(names), axes.getDictionary(module.getContext())};
}

LogicalResult ConvertKernelToPlanPass::runOnStep(func::FuncOp step) {
  if (!step.getBody().hasOneBlock())
    return step.emitOpError("has ") << step.getBody().getBlocks().size() << " blocks, a plan needs one";
  FailureOr<BufferAssignment> assignment = BufferAssignment::compute(step);
  if (failed(assignment))
    return failure();

  OpBuilder builder(step);
  // The order of the streams is that of the artifact format.
  ArrayAttr streams = builder.getStrArrayAttr({"compute", "gather", "reduce", "scalar"});
  auto [communicators, axes] = listCommunicators(getOperation(), step);
  auto program = plan::ProgramOp::create(
      builder, step.getLoc(), "train_step", getNumRanks(getOperation()), streams, communicators,
      /*state_bytes=*/0, /*transient_bytes=*/0, /*lower_bound=*/0, builder.getDictionaryAttr({}), axes);
  program.getBody().emplaceBlock();
  if (failed(emitCommands(step, *assignment, program)))
    return failure();
  addDataflow(step);
  placeBuffers(program);
  addKernelFunctions(step);
  step.erase();
  return success();
}
