//===- AtenToKernel.cpp - one rank's program as kernels -------------------===//

#include "Fusion/Emitter.h"
#include "Fusion/PackGradients.h"
#include "Fusion/ReadNarrow.h"
#include "Fusion/ReadThroughViews.h"
#include "Fusion/Recompute.h"
#include "Lowering/Lowering.h"
#include "UnpackViews.h"
#include "dialects/Kernel/ArgumentType.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "spmd/Conversion/AtenToKernel/Passes.h"
#include "spmd/Transforms/FunctionPass.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd {

#define GEN_PASS_DEF_CONVERTATENTOKERNELPASS
#include "spmd/Conversion/AtenToKernel/Passes.h.inc"

namespace {

using namespace spmd::fusion;

/// Kernels work on plain tensors that are not empty.
LogicalResult checkTensor(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return success();
  if (tensor.getEncoding())
    return op->emitOpError("still has a sharded value of type ") << tensor << ", run spmd-strip-sharding first";
  if (tensor.getNumElements() == 0)
    return op->emitOpError("has an empty tensor of type ")
           << tensor
           << ", which kernels do not support; call the step with at least one row, and remove ops on tensors "
              "without rows";
  if (!kernel::getArgumentType(tensor).isSignlessIntOrFloat())
    return op->emitOpError("has a tensor of type ") << tensor << ", whose element type is not supported by kernels";
  return success();
}

LogicalResult lowerOp(GraphBuilder &g, Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (failed(checkTensor(op, type)))
      return failure();
  g.setOrigin(op);
  for (auto *lower : {lowerViewOp, lowerPointwiseOp, lowerReductionOp, lowerScanOp, lowerNormalizationOp, lowerLossOp,
                      lowerHeavyOp, lowerAttentionOp, lowerIndexingOp, lowerWindowOp, lowerSpmdOp})
    if (Lowered lowered = lower(g, op))
      return *lowered;
  return op->emitOpError("has no kernel");
}

LogicalResult convert(func::FuncOp func, bool fuse, int64_t reductionBlocks, bool fewerLaunches, bool clampIndices) {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("has several blocks, a step has one");
  if (fuse)
    widenUnpacks(func);
  Block &block = func.getBody().front();
  Graph graph;
  GraphBuilder builder(graph, reductionBlocks, fewerLaunches, clampIndices);
  for (BlockArgument argument : block.getArguments())
    builder.set(argument, builder.addArgument(argument));
  SmallVector<Operation *> ops = llvm::to_vector(llvm::make_pointer_range(block));
  for (Operation *op : ops)
    if (failed(lowerOp(builder, op)))
      return failure();
  graph.removeDead();
  packAttentionGradients(graph);
  if (fuse) {
    recomputeLightValues(graph);
    readThroughViews(graph);
    if (fewerLaunches)
      readNarrow(graph);
  }

  Placement placement(graph);
  std::vector<std::unique_ptr<Cluster>> clusters = formClusters(graph, placement, fuse, fewerLaunches);
  Emitter(func, graph, placement, clusters).run();

  llvm::DenseSet<Operation *> kept;
  for (Node *anchor : placement.getAnchors())
    if (anchor->op)
      kept.insert(anchor->op);
  for (Operation *op : llvm::reverse(ops))
    if (!kept.contains(op))
      op->erase();
  narrowUnpacks(func);
  return success();
}

struct ConvertAtenToKernelPass : FunctionPass<impl::ConvertAtenToKernelPassBase<ConvertAtenToKernelPass>> {
  using FunctionPass::FunctionPass;

  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override {
    return convert(func, fuse, reductionBlocks, fewerLaunches, clampIndices);
  }
};

} // namespace
} // namespace spmd
