//===- TensorSplits.cpp - ops that a cut dimension takes apart ------------===//

#include "TensorSplits.h"
#include "SplitMeans.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "spmd/Transforms/SegmentListener.h"

using namespace mlir;

namespace spmd::partition {

namespace {

/// Softmax along a dimension, forward and backward, in f32 for halves as PyTorch computes it.
class SoftmaxSplit {
public:
  SoftmaxSplit(OpBuilder &builder, Operation *op)
      : builder(builder), op(op), loc(op->getLoc()), dim(cast<IntegerAttr>(op->getAttr("dim")).getInt()),
        own(typeOf(op->getResult(0)).getElementType()) {}

  Value forward() {
    Value self = in(op->getOperand(0));
    Value most = aten::AmaxOp::create(builder, loc, getRowType(self), self, builder.getDenseI64ArrayAttr({dim}),
                                      builder.getBoolAttr(true));
    Value below = aten::SubTensorOp::create(builder, loc, self.getType(), self, most);
    Value exp = aten::ExpOp::create(builder, loc, self.getType(), below);
    Value total = sum(exp);
    if (isa<aten::SoftmaxOp>(op))
      return out(aten::DivTensorOp::create(builder, loc, self.getType(), exp, total));
    Value log = aten::LogOp::create(builder, loc, total.getType(), total);
    return out(aten::SubTensorOp::create(builder, loc, self.getType(), below, log));
  }

  Value backward() {
    Value gradient = in(op->getOperand(0)), output = in(op->getOperand(1));
    if (isa<aten::SoftmaxBackwardDataOp>(op)) {
      Value product = multiply(gradient, output);
      Value rest = aten::SubTensorOp::create(builder, loc, output.getType(), gradient, sum(product));
      return out(multiply(output, rest));
    }
    Value exp = aten::ExpOp::create(builder, loc, output.getType(), output);
    Value scaled = multiply(exp, sum(gradient));
    return out(aten::SubTensorOp::create(builder, loc, output.getType(), gradient, scaled));
  }

private:
  Value castTo(Value value, Type type) {
    if (typeOf(value).getElementType() == type)
      return value;
    return aten::ToCopyOp::create(builder, loc, typeOf(value).clone(type), value, TypeAttr::get(type));
  }
  Value in(Value value) {
    Type type = typeOf(value).getElementType();
    return castTo(value, type.isF16() || type.isBF16() ? builder.getF32Type() : type);
  }
  Value out(Value value) { return castTo(value, own); }
  RankedTensorType getRowType(Value value) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[dim] = 1;
    return typeOf(value).clone(shape);
  }
  Value sum(Value value) {
    return aten::SumDimIntListOp::create(builder, loc, getRowType(value), value, builder.getDenseI64ArrayAttr({dim}),
                                         builder.getBoolAttr(true), TypeAttr());
  }
  Value multiply(Value a, Value b) { return aten::MulTensorOp::create(builder, loc, a.getType(), a, b); }

  OpBuilder &builder;
  Operation *op;
  Location loc;
  int64_t dim;
  Type own;
};

bool splitSoftmax(OpBuilder &builder, Operation *op, function_ref<AxisState(Value)> getState) {
  bool isForward = isa<aten::SoftmaxOp, aten::LogSoftmaxOp>(op);
  if (!isForward && !isa<aten::SoftmaxBackwardDataOp, aten::LogSoftmaxBackwardDataOp>(op))
    return false;
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt();
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return getState(operand).isShard() && getState(operand).dim == dim; }))
    return false;
  SoftmaxSplit split(builder, op);
  op->getResult(0).replaceAllUsesWith(isForward ? split.forward() : split.backward());
  op->erase();
  return true;
}

/// Else each rank would add the bias to its summand.
bool splitBias(OpBuilder &builder, Operation *op, function_ref<AxisState(Value)> getState) {
  auto product = dyn_cast<aten::AddmmOp>(op);
  auto isCut = [&](Value value, int64_t dim) { return getState(value).isShard() && getState(value).dim == dim; };
  if (!product || (!isCut(product.getMat1(), 1) && !isCut(product.getMat2(), 0)) ||
      aten::getScalarValue(product.getAlpha()) != 1 || aten::getScalarValue(product.getBeta()) != 1)
    return false;
  auto sum =
      aten::MmOp::create(builder, op->getLoc(), op->getResult(0).getType(), product.getMat1(), product.getMat2());
  auto biased = aten::AddTensorOp::create(builder, op->getLoc(), op->getResult(0).getType(), sum, product.getSelf());
  op->getResult(0).replaceAllUsesWith(biased);
  op->erase();
  return true;
}

} // namespace

bool splitForParts(Operation *op, function_ref<AxisState(Value)> getState) {
  SegmentListener listener;
  listener.setSource(op);
  OpBuilder builder(op, &listener);
  if (splitBias(builder, op, getState) || splitSoftmax(builder, op, getState))
    return true;
  if (!isMean(op) || llvm::none_of(op->getOperands(), [&](Value operand) { return getState(operand).isShard(); }))
    return false;
  splitMean(op, divideByConstant);
  return true;
}

} // namespace spmd::partition
