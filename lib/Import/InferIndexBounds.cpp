//===- InferIndexBounds.cpp - Which row numbers a batch input may hold ----===//

#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Import/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_INFERINDEXBOUNDSPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

/// What the uses of an input say of its values.
struct Bounds {
  std::optional<int64_t> bound, ignored;
  /// Some use allows nothing but row numbers.
  bool strict = false;

  void addBound(int64_t rows) { bound = bound ? std::min(*bound, rows) : rows; }
};

struct InferIndexBoundsPass : spmd::impl::InferIndexBoundsPassBase<InferIndexBoundsPass> {
  void runOnOperation() override;
};

} // namespace

/// Ops whose results are elements of the operand, in whatever order.
static bool keepsElements(Operation *op) {
  if (auto cast = dyn_cast<aten::ToCopyOp>(op)) // between widths of integers: row numbers fit in all of them
    return getElementTypeOrSelf(cast.getSelf().getType()).isInteger() &&
           getElementTypeOrSelf(cast->getResult(0).getType()).isInteger();
  return isa<aten::ViewOp, aten::UnsqueezeOp, aten::SqueezeDimOp, aten::PermuteOp, aten::ExpandOp, aten::SliceTensorOp,
             aten::SelectIntOp, aten::SplitTensorOp, aten::CloneOp, aten::CatOp, aten::StackOp>(op);
}

static int64_t getRows(Value table, unsigned dim) { return cast<RankedTensorType>(table.getType()).getDimSize(dim); }

static void collectBounds(Value value, Bounds &bounds) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (keepsElements(op)) {
      for (Value result : op->getResults())
        collectBounds(result, bounds);
    } else if (auto embedding = dyn_cast<aten::EmbeddingOp>(op); embedding && embedding.getIndices() == value) {
      bounds.addBound(getRows(embedding.getWeight(), 0));
      bounds.strict = true;
    } else if (auto loss = dyn_cast<aten::NllLossForwardOp>(op); loss && loss.getTarget() == value) {
      // Classes are dimension 1 of a batch of rows, and the only one of a single row.
      auto rows = cast<RankedTensorType>(loss.getSelf().getType());
      bounds.addBound(getRows(loss.getSelf(), rows.getRank() > 1 ? 1 : 0));
      int64_t ignored = loss.getIgnoreIndex();
      bounds.strict |= bounds.ignored && *bounds.ignored != ignored;
      bounds.ignored = ignored;
    }
  }
}

void InferIndexBoundsPass::runOnOperation() {
  func::FuncOp step = getStep(getOperation());
  if (!step)
    return signalPassFailure();
  Builder builder(&getContext());
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!getArgRole<BatchAttr>(step, index))
      continue;
    Bounds bounds;
    collectBounds(argument, bounds);
    if (!bounds.bound)
      continue;
    step.setArgAttr(index, kIndexBoundAttr, builder.getI64IntegerAttr(*bounds.bound));
    if (bounds.ignored && !bounds.strict)
      step.setArgAttr(index, kIgnoreIndexAttr, builder.getI64IntegerAttr(*bounds.ignored));
  }
}
