//===- ShardingRulesWindow.cpp - Rules of windows and rms norm ------------===//

#include "dialects/Aten/AtenNorm.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenWindow.h"
#include "dialects/Aten/RuleBuilder.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

/// A value's dimensions: `leading` factors, then whole ones.
static Dims leadingFactors(Value value, llvm::ArrayRef<int64_t> leading) {
  Dims dims = RuleBuilder::whole(typeOf(value).getRank());
  llvm::copy(leading, dims.begin());
  return dims;
}

Rule spmd::aten::rmsNormRule(Operation *op) {
  auto forward = dyn_cast<RmsNormOp>(op);
  auto backward = dyn_cast<RmsNormBackwardOp>(op);
  Value input = forward ? forward.getInput() : backward.getInput();
  size_t inner = (forward ? forward.getNormalizedShape() : backward.getNormalizedShape()).size();
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = typeOf(input).getShape();
  Dims rows = builder.factors(shape.drop_back(inner)), statistics = rows;
  statistics.append(inner, ShardingRule::kNone);
  Dims dims = leadingFactors(input, rows);
  if (forward)
    return builder.operand(0, dims).result(0, dims).result(1, statistics).rule;
  builder.operand(0, dims).operand(1, dims).operand(2, statistics);
  if (backward.getGradInput())
    builder.result(0, dims);
  return builder.rule;
}

Rule spmd::aten::convolutionRule(Operation *op) {
  RuleBuilder builder(op);
  int64_t batch = builder.factor(typeOf(op->getOperand(0)).getDimSize(0));
  return builder.operand(0, leadingFactors(op->getOperand(0), batch))
      .result(0, leadingFactors(op->getResult(0), batch))
      .rule;
}

Rule spmd::aten::convolutionBackwardRule(Operation *op) {
  auto backward = cast<ConvolutionBackwardOp>(op);
  RuleBuilder builder(op);
  int64_t batch = builder.factor(typeOf(backward.getInput()).getDimSize(0));
  builder.operand(0, leadingFactors(backward.getGradOutput(), batch));
  builder.operand(1, leadingFactors(backward.getInput(), batch));
  if (backward.getGradInput())
    builder.result(0, leadingFactors(backward.getGradInput(), batch));
  return builder.linearity(Linearity::multilinear, {0}).rule;
}

Rule spmd::aten::windowRule(Operation *op, Linearity linearity, ArrayRef<unsigned> multilinearOperands) {
  RuleBuilder builder(op);
  Dims leading = builder.factors(typeOf(op->getOperand(0)).getShape().take_front(2));
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    builder.operand(index, leadingFactors(operand, leading));
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    builder.result(index, leadingFactors(result, leading));
  return builder.linearity(linearity, multilinearOperands).rule;
}

Rule spmd::aten::batchRule(Operation *op, Linearity linearity) {
  RuleBuilder builder(op);
  int64_t batch = builder.factor(typeOf(op->getOperand(0)).getDimSize(0));
  builder.operand(0, leadingFactors(op->getOperand(0), batch));
  return builder.result(0, leadingFactors(op->getResult(0), batch)).linearity(linearity).rule;
}
