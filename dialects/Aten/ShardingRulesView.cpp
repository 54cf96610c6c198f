//===- ShardingRulesView.cpp - Rules of layout ops and pieces -------------===//

#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

Rule spmd::aten::permuteRule(Operation *op) {
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getOperand(0)).getShape()), permuted;
  for (int64_t dim : cast<PermuteOp>(op).getDims())
    permuted.push_back(dims[dim]);
  return builder.operand(0, dims).result(0, permuted).linearity(Linearity::additive).rule;
}

Rule spmd::aten::expandRule(Operation *op) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  Dims dims = builder.factors(shape);
  builder.operand(0, RuleBuilder::broadcast(typeOf(op->getOperand(0)), shape, dims));
  return builder.result(0, dims).linearity(Linearity::additive).rule;
}

Rule spmd::aten::sliceRule(Operation *op) {
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt();
  Value piece = op->getResult(0), from = op->getOperand(0);
  if (isa<SliceScatterOp>(op))
    piece = op->getOperand(1);
  bool everything = typeOf(piece).getDimSize(dim) == typeOf(from).getDimSize(dim);
  if (isa<SliceBackwardOp>(op))
    everything = typeOf(op->getResult(0)).getDimSize(dim) == typeOf(from).getDimSize(dim);
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getResult(0)).getShape());
  if (!everything)
    dims[dim] = ShardingRule::kWhole;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    builder.operand(i, dims);
  return builder.result(0, dims).linearity(Linearity::additive).rule;
}

Rule spmd::aten::selectRule(Operation *op) {
  int64_t dim = cast<IntegerAttr>(op->getAttr("dim")).getInt();
  bool backward = isa<SelectBackwardOp>(op);
  RuleBuilder builder(op);
  Value larger = backward ? op->getResult(0) : op->getOperand(0);
  Dims dims = builder.factors(typeOf(larger).getShape());
  dims[dim] = ShardingRule::kWhole;
  Dims row = dims;
  row.erase(row.begin() + dim);
  if (isa<SelectScatterOp>(op))
    builder.operand(0, dims).operand(1, row).result(0, dims);
  else if (backward)
    builder.operand(0, row).result(0, dims);
  else
    builder.operand(0, dims).result(0, row);
  return builder.linearity(Linearity::additive).rule;
}

Rule spmd::aten::stackRule(Operation *op) {
  int64_t dim = cast<StackOp>(op).getDim();
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getResult(0)).getShape());
  dims[dim] = ShardingRule::kWhole;
  builder.result(0, dims);
  dims.erase(dims.begin() + dim);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    builder.operand(i, dims);
  return builder.linearity(Linearity::additive).rule;
}

Rule spmd::aten::flipRule(Operation *op) {
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getResult(0)).getShape());
  for (int64_t dim : cast<FlipOp>(op).getDims())
    dims[dim] = ShardingRule::kWhole;
  return builder.operand(0, dims).result(0, dims).linearity(Linearity::additive).rule;
}

Rule spmd::aten::fullRule(Operation *op) {
  RuleBuilder builder(op);
  return builder.result(0, builder.factors(typeOf(op->getResult(0)).getShape())).rule;
}
