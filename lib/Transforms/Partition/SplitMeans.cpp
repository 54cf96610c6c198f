//===- SplitMeans.cpp - spmd-split-means ----------------------------------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/FunctionPass.h"
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

/// Mean and variance as sums and divisions by the global count, in f32 for halves. What the mean is made of is kept
/// from the variance's second pass, as in PyTorch: no difference of large squares.
static void splitVariance(aten::VarMeanCorrectionOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto make = [&](Operation *made) {
    if (Attribute segment = op->getAttr(kSegmentAttr))
      made->setAttr(kSegmentAttr, segment);
    return made->getResult(0);
  };
  Type own = op.getVar().getType().getElementType();
  Type compute = own.isF16() || own.isBF16() ? builder.getF32Type() : own;
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  auto castTo = [&](Value value, Type type) -> Value {
    if (typeOf(value).getElementType() == type)
      return value;
    return make(aten::ToCopyOp::create(builder, loc, typeOf(value).clone(type), value, TypeAttr::get(type)));
  };
  Value self = castTo(op.getSelf(), compute);
  SmallVector<int64_t> kept(typeOf(self).getShape());
  int64_t count = 1;
  for (int64_t dim : op.getDim())
    count *= std::exchange(kept[dim], 1);
  RankedTensorType rowType = typeOf(self).clone(kept);
  auto meanOf = [&](Value value, double divisor) {
    Value sum = make(aten::SumDimIntListOp::create(builder, loc, rowType, value, op.getDimAttr(),
                                                   builder.getBoolAttr(true), TypeAttr()));
    return make(aten::DivScalarOp::create(builder, loc, rowType, sum, builder.getF64FloatAttr(divisor)));
  };
  Value mean = meanOf(self, static_cast<double>(count));
  Value centered = make(aten::SubTensorOp::create(builder, loc, self.getType(), self, mean));
  Value squares = make(aten::MulTensorOp::create(builder, loc, self.getType(), centered, centered));
  Value var = meanOf(squares, std::max(0.0, static_cast<double>(count) - aten::getScalarValue(op.getCorrection())));
  for (auto [result, value] : {std::pair(op.getVar(), var), std::pair(op.getMean(), mean)}) {
    Value made = castTo(value, own);
    RankedTensorType type = result.getType();
    if (type.getShape() != typeOf(made).getShape())
      made = make(aten::ViewOp::create(builder, loc, type, made, builder.getDenseI64ArrayAttr(type.getShape())));
    result.replaceAllUsesWith(made);
  }
  op.erase();
}

namespace {
struct SplitMeansPass : FunctionPass<spmd::impl::SplitMeansBase<SplitMeansPass>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override {
    func.walk([](aten::VarMeanCorrectionOp op) { splitVariance(op); });
    func.walk([](aten::MeanDimOp op) {
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
    func.walk([](Operation *op) {
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
    return success();
  }
};
} // namespace
