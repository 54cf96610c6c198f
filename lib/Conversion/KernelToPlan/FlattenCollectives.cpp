//===- FlattenCollectives.cpp - Contiguous chunks for communicators -------===//

#include "Communicators.h"
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

/// Rows of a tensor seen as [outer][total][inner], cut over ranks in chunks; a chunk is [outer][chunk][inner].
struct RowLayout {
  int64_t outer = 1, total, chunk, inner = 1, ranks;

  RowLayout(RankedTensorType whole, int64_t dim, int64_t pre, int64_t chunk, int64_t ranks)
      : total(whole.getDimSize(dim) / pre), chunk(chunk), ranks(ranks) {
    for (int64_t size : whole.getShape().take_front(dim))
      outer *= size;
    for (int64_t size : whole.getShape().drop_front(dim + 1))
      inner *= size;
    outer *= pre;
  }
  bool isFlat() const { return outer == 1 && total == chunk * ranks; }
  /// The rows of a rank that there are; the last ranks may have fewer than a chunk, or none.
  int64_t getRows(int64_t rank) const { return std::clamp<int64_t>(total - rank * chunk, 0, chunk); }

  /// Maps points [outer][rows][inner] to elements of the whole tensor.
  AffineMap getWholeMap(MLIRContext *context, int64_t rank) const { return getMap(context, total, rank * chunk, 0); }
  /// Maps points to elements of the chunks laid one after the other, from row `first` of the rank's chunk on.
  AffineMap getChunksMap(MLIRContext *context, int64_t rank, int64_t first) const {
    return getMap(context, chunk, first, rank * outer * chunk * inner);
  }

private:
  AffineMap getMap(MLIRContext *context, int64_t rows, int64_t first, int64_t offset) const {
    AffineExpr o = getAffineDimExpr(0, context), r = getAffineDimExpr(1, context), i = getAffineDimExpr(2, context);
    return AffineMap::get(3, 0, (o * rows + r + first) * inner + i + offset);
  }
};

struct FlattenCollectivesPass : StepPass<spmd::impl::FlattenCollectivesPassBase<FlattenCollectivesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override;
};

} // namespace

/// The type of one chunk per rank, one after the other.
static RankedTensorType getChunksType(RankedTensorType chunk, int64_t ranks) {
  SmallVector<int64_t> shape(chunk.getShape());
  shape[0] *= ranks;
  return RankedTensorType::get(shape, chunk.getElementType());
}

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

/// `result` is the gathered tensor, of the op itself or of its wait.
template <typename Gather>
static void flattenGather(Gather op, Value result) {
  auto local = cast<RankedTensorType>(op.getInput().getType());
  auto whole = cast<RankedTensorType>(result.getType());
  int64_t ranks = getGroupSize(cast<CollectiveOpInterface>(op.getOperation()));
  RowLayout layout(whole, op.getDim(), op.getPre(), local.getDimSize(op.getDim()) / static_cast<int64_t>(op.getPre()),
                   ranks);
  if (layout.isFlat())
    return;
  RankedTensorType chunks = getChunksType(local, ranks);
  op.setDim(0);
  op.setPre(1);
  op.setTotal(chunks.getDimSize(0));
  if (op->getResult(0) != result)
    op->getResult(0).setType(HandleType::get(op.getContext(), {chunks}));
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfterValue(result);
  Value sorted = sortGathered(builder, op.getLoc(), result, whole, layout);
  result.setType(chunks);
  result.replaceAllUsesExcept(sorted, sorted.getDefiningOp());
}

template <typename Scatter>
static void flattenScatter(Scatter op, Value result) {
  auto whole = cast<RankedTensorType>(op.getInput().getType());
  auto local = cast<RankedTensorType>(result.getType());
  int64_t ranks = getGroupSize(cast<CollectiveOpInterface>(op.getOperation()));
  RowLayout layout(whole, op.getDim(), op.getPre(), op.getChunk(), ranks);
  if (layout.isFlat())
    return;
  OpBuilder builder(op);
  op.getInputMutable().assign(sortForScatter(builder, op.getLoc(), op.getInput(), getChunksType(local, ranks), layout));
  op.setDim(0);
  op.setPre(1);
  op.setChunk(local.getDimSize(0));
}

LogicalResult FlattenCollectivesPass::runOnStep(func::FuncOp step) {
  WalkResult walk = step.walk([](Operation *op) -> WalkResult {
    Value result;
    if (isa<AllGatherOp, ReduceScatterOp>(op)) {
      result = op->getResult(0);
    } else if (isa<AllGatherStartOp, ReduceScatterStartOp>(op)) {
      if (!op->getResult(0).hasOneUse())
        return op->emitOpError("must have exactly one wait"), WalkResult::interrupt();
      result = op->getResult(0).getUsers().begin()->getResult(0);
    }
    if (auto gather = dyn_cast<AllGatherOp>(op))
      flattenGather(gather, result);
    else if (auto gather = dyn_cast<AllGatherStartOp>(op))
      flattenGather(gather, result);
    else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      flattenScatter(scatter, result);
    else if (auto scatter = dyn_cast<ReduceScatterStartOp>(op))
      flattenScatter(scatter, result);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
