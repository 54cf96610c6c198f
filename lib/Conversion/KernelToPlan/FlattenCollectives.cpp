//===- FlattenCollectives.cpp - Contiguous chunks for communicators -------===//

#include "RowLayout.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_FLATTENCOLLECTIVESPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct FlattenCollectivesPass : StepPass<spmd::impl::FlattenCollectivesPassBase<FlattenCollectivesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override;
};

} // namespace

/// The gathered chunks as the tensor whose rows they are.
static Value sortGathered(OpBuilder &builder, Location loc, Value chunks, RankedTensorType whole,
                          const RowLayout &layout) {
  MLIRContext *context = builder.getContext();
  SmallVector<Attribute> pieces;
  for (int64_t rank = 0; rank != layout.ranks; ++rank)
    if (int64_t rows = layout.getRows(rank))
      pieces.push_back(kernel::PieceAttr::get(context, 0, {layout.outer, rows, layout.inner},
                                              layout.getChunksMap(context, rank, 0),
                                              layout.getWholeMap(context, rank)));
  return kernel::CopyOp::create(builder, loc, whole, chunks, builder.getArrayAttr(pieces), StringAttr());
}

/// The tensor as one chunk of rows per rank; zeros where there are no rows.
static Value sortForScatter(OpBuilder &builder, Location loc, Value whole, RankedTensorType chunks,
                            const RowLayout &layout) {
  MLIRContext *context = builder.getContext();
  SmallVector<Attribute> pieces;
  for (int64_t rank = 0; rank != layout.ranks; ++rank) {
    int64_t rows = layout.getRows(rank);
    if (rows > 0)
      pieces.push_back(kernel::PieceAttr::get(context, 0, {layout.outer, rows, layout.inner},
                                              layout.getWholeMap(context, rank),
                                              layout.getChunksMap(context, rank, 0)));
    if (rows < layout.chunk) {
      AffineMap to = layout.getChunksMap(context, rank, rows);
      pieces.push_back(kernel::PieceAttr::get(context, -1, {layout.outer, layout.chunk - rows, layout.inner}, to, to));
    }
  }
  return kernel::CopyOp::create(builder, loc, chunks, whole, builder.getArrayAttr(pieces), StringAttr());
}

/// What is received whole is received as chunks, and sorted then; what is sent whole is sorted before.
static void flatten(RowCollectiveOpInterface op, Value received) {
  RowLayout layout(op);
  if (layout.isFlat())
    return;
  auto collective = cast<CollectiveOpInterface>(op.getOperation());
  CollectiveKind kind = collective.getCollectiveKind();
  auto type = cast<RankedTensorType>(received.getType());
  op.setDim(0);
  op.setPre(1);
  if (sendsWhole(kind)) {
    OpBuilder builder(op);
    OpOperand &sent = op->getOpOperand(0);
    sent.set(sortForScatter(builder, op.getLoc(), sent.get(), layout.getChunksType(), layout));
    op.setRows(type.getDimSize(0));
  }
  if (receivesWhole(kind)) {
    RankedTensorType chunks = layout.getChunksType();
    op.setRows(chunks.getDimSize(0));
    if (collective.isStart())
      op->getResult(0).setType(HandleType::get(op.getContext(), {chunks}));
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfterValue(received);
    Value sorted = sortGathered(builder, op.getLoc(), received, type, layout);
    received.setType(chunks);
    received.replaceAllUsesExcept(sorted, sorted.getDefiningOp());
  }
}

LogicalResult FlattenCollectivesPass::runOnStep(func::FuncOp step) {
  WalkResult walk = step.walk([](RowCollectiveOpInterface op) -> WalkResult {
    auto collective = cast<CollectiveOpInterface>(op.getOperation());
    if (collective.isStart() && !op->hasOneUse())
      return op->emitOpError("must have exactly one wait"), WalkResult::interrupt();
    flatten(op, getReceived(collective).front());
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
