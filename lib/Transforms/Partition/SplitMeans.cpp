//===- SplitMeans.cpp - spmd-split-means ----------------------------------===//

#include "SplitMeans.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Partition/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_SPLITMEANS
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

using namespace spmd::partition;

/// PyTorch's numbers of the `reduction` argument.
enum Reduction { kMean = 1, kSum = 2 };

Operation *partition::divideByConstant(OpBuilder &builder, Value sum, const Count &count) {
  return aten::DivScalarOp::create(builder, sum.getLoc(), sum.getType(), sum, count.number);
}

/// `value` / `by`, used wherever `value` was.
static void divideUses(OpBuilder &builder, Value value, function_ref<Operation *()> by) {
  builder.setInsertionPointAfter(value.getDefiningOp());
  Operation *division = by();
  llvm::SmallPtrSet<Operation *, 4> made;
  for (Operation *op = value.getDefiningOp()->getNextNode(); op != division->getNextNode(); op = op->getNextNode())
    made.insert(op);
  value.replaceUsesWithIf(division->getResult(0), [&](OpOperand &use) { return !made.contains(use.getOwner()); });
}

static SmallVector<int64_t> getAllDims(Value value) { return llvm::to_vector(llvm::seq(typeOf(value).getRank())); }

/// Divides what `value` is by the elements of `of`.
static void divideByElements(OpBuilder &builder, Value value, Value of, ArrayRef<int64_t> dims, DivideByCount divide) {
  int64_t number = 1;
  for (int64_t dim : dims)
    number *= typeOf(of).getDimSize(dim);
  divideUses(builder, value,
             [&] { return divide(builder, value, {of, llvm::to_vector(dims), 0, builder.getI64IntegerAttr(number)}); });
}

static void splitMeanDim(OpBuilder &builder, aten::MeanDimOp op, DivideByCount divide) {
  auto sum = aten::SumDimIntListOp::create(builder, op.getLoc(), op.getType(), op.getSelf(), op.getDimAttr(),
                                           op.getKeepdimAttr(), op.getDtypeAttr());
  op.replaceAllUsesWith(sum.getResult());
  divideByElements(builder, sum, op.getSelf(), op.getDim(), divide);
  op.erase();
}

/// Mean and variance as sums and divisions by the global count, in f32 for halves. What the mean is made of is kept
/// from the variance's second pass, as in PyTorch: no difference of large squares.
static void splitVariance(OpBuilder &builder, aten::VarMeanCorrectionOp op, DivideByCount divide) {
  Location loc = op.getLoc();
  Type own = op.getVar().getType().getElementType();
  Type compute = own.isF16() || own.isBF16() ? builder.getF32Type() : own;
  auto castTo = [&](Value value, Type type) -> Value {
    if (typeOf(value).getElementType() == type)
      return value;
    return aten::ToCopyOp::create(builder, loc, typeOf(value).clone(type), value, TypeAttr::get(type));
  };
  Value self = castTo(op.getSelf(), compute);
  SmallVector<int64_t> kept(typeOf(self).getShape());
  int64_t count = 1;
  for (int64_t dim : op.getDim())
    count *= std::exchange(kept[dim], 1);
  RankedTensorType rowType = typeOf(self).clone(kept);
  auto meanOf = [&](Value value, double correction) -> Value {
    Value sum = aten::SumDimIntListOp::create(builder, loc, rowType, value, op.getDimAttr(), builder.getBoolAttr(true),
                                              TypeAttr());
    double number = std::max(0.0, static_cast<double>(count) - correction);
    Count counted = {op.getSelf(), llvm::to_vector(op.getDim()), correction, builder.getF64FloatAttr(number)};
    return divide(builder, sum, counted)->getResult(0);
  };
  Value mean = meanOf(self, 0);
  Value centered = aten::SubTensorOp::create(builder, loc, self.getType(), self, mean);
  Value squares = aten::MulTensorOp::create(builder, loc, self.getType(), centered, centered);
  Value var = meanOf(squares, aten::getScalarValue(op.getCorrection()));
  for (auto [result, value] : {std::pair(op.getVar(), var), std::pair(op.getMean(), mean)}) {
    Value made = castTo(value, own);
    RankedTensorType type = result.getType();
    if (type.getShape() != typeOf(made).getShape())
      made = aten::ViewOp::create(builder, loc, type, made, builder.getDenseI64ArrayAttr(type.getShape()));
    result.replaceAllUsesWith(made);
  }
  op.erase();
}

/// A loss, or the backward of one, that divides by the count of what it has added up.
static bool isMeanLoss(Operation *op) {
  auto reduction = op->getAttrOfType<IntegerAttr>("reduction");
  return reduction && reduction.getInt() == kMean &&
         isa<aten::NllLossForwardOp, aten::MseLossOp, aten::MseLossBackwardOp>(op);
}

static void splitLoss(OpBuilder &builder, Operation *op, DivideByCount divide) {
  op->setAttr("reduction", builder.getI64IntegerAttr(kSum));
  if (auto nll = dyn_cast<aten::NllLossForwardOp>(op)) {
    divideUses(builder, nll.getOutput(), [&] {
      return aten::DivTensorOp::create(builder, nll.getLoc(), nll.getOutput().getType(), nll.getOutput(),
                                       nll.getTotalWeight());
    });
  } else {
    // self is operand 0 of the loss, operand 1 of its backward.
    Value of = op->getOperand(op->getNumOperands() - 1);
    divideByElements(builder, op->getResult(0), of, getAllDims(of), divide);
  }
}

bool partition::isMean(Operation *op) { return isa<aten::VarMeanCorrectionOp, aten::MeanDimOp>(op) || isMeanLoss(op); }

void partition::splitMean(Operation *op, DivideByCount divide) {
  SegmentListener listener;
  listener.setSource(op);
  OpBuilder builder(op, &listener);
  if (auto variance = dyn_cast<aten::VarMeanCorrectionOp>(op))
    splitVariance(builder, variance, divide);
  else if (auto mean = dyn_cast<aten::MeanDimOp>(op))
    splitMeanDim(builder, mean, divide);
  else if (isMeanLoss(op))
    splitLoss(builder, op, divide);
}

namespace {
struct SplitMeansPass : FunctionPass<spmd::impl::SplitMeansBase<SplitMeansPass>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override {
    func.walk([](Operation *op) { splitMean(op, divideByConstant); });
    return success();
  }
};
} // namespace
