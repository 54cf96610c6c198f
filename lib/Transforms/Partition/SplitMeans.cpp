//===- SplitMeans.cpp - spmd-split-means ----------------------------------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Partition/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_SPLITMEANS
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// PyTorch's numbers of the `reduction` argument.
enum Reduction { kMean = 1, kSum = 2 };

static int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

/// `value` / `by`, used wherever `value` was.
static void divideUses(Value value, function_ref<Operation *(OpBuilder &)> by) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfter(value.getDefiningOp());
  Operation *division = by(builder);
  if (Attribute segment = value.getDefiningOp()->getAttr(kSegmentAttr))
    division->setAttr(kSegmentAttr, segment);
  value.replaceAllUsesExcept(division->getResult(0), division);
}

static void divideByCount(Value value, int64_t count) {
  divideUses(value, [&](OpBuilder &builder) {
    return aten::DivScalarOp::create(builder, value.getLoc(), value.getType(), value, builder.getI64IntegerAttr(count));
  });
}

namespace {
struct SplitMeansPass : spmd::impl::SplitMeansBase<SplitMeansPass> {
  void runOnOperation() override {
    getOperation().walk([](aten::MeanDimOp op) {
      OpBuilder builder(op);
      auto sum = aten::SumDimIntListOp::create(builder, op.getLoc(), op.getType(), op.getSelf(), op.getDimAttr(),
                                               op.getKeepdimAttr(), op.getDtypeAttr());
      if (Attribute segment = op->getAttr(kSegmentAttr))
        sum->setAttr(kSegmentAttr, segment);
      int64_t count = elementsOf(op.getSelf()) / std::max<int64_t>(elementsOf(op), 1);
      op.replaceAllUsesWith(sum.getResult());
      op.erase();
      divideByCount(sum, count);
    });
    getOperation().walk([](Operation *op) {
      auto reduction = op->getAttrOfType<IntegerAttr>("reduction");
      if (!reduction || reduction.getInt() != kMean)
        return;
      if (!isa<aten::NllLossForwardOp, aten::MseLossOp, aten::MseLossBackwardOp>(op))
        return;
      op->setAttr("reduction", Builder(op).getI64IntegerAttr(kSum));
      if (auto nll = dyn_cast<aten::NllLossForwardOp>(op))
        divideUses(nll.getOutput(), [&](OpBuilder &builder) {
          return aten::DivTensorOp::create(builder, nll.getLoc(), nll.getOutput().getType(), nll.getOutput(),
                                           nll.getTotalWeight());
        });
      else
        // self is operand 0 of the loss, operand 1 of its backward.
        divideByCount(op->getResult(0), elementsOf(op->getOperand(op->getNumOperands() - 1)));
    });
  }
};
} // namespace
