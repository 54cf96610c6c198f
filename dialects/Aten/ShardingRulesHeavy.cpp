//===- ShardingRulesHeavy.cpp - Rules of products, norms, losses ----------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

static constexpr int64_t kMean = 1, kNoReduction = 0;

/// Number of an ODS operand among the operands; -1 when it is absent.
static int indexOf(Operation *op, Value operand) {
  for (OpOperand &use : op->getOpOperands())
    if (use.get() == operand)
      return use.getOperandNumber();
  return -1;
}

Rule spmd::aten::addmmRule(Operation *op) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  Dims dims = builder.factors(shape);
  int64_t rank = shape.size();
  Dims left = dims, right = dims;
  left[rank - 1] = ShardingRule::kWhole;
  right[rank - 2] = ShardingRule::kWhole;
  builder.operand(0, RuleBuilder::broadcast(typeOf(op->getOperand(0)), shape, dims));
  return builder.operand(1, left).operand(2, right).result(0, dims).rule;
}

Rule spmd::aten::groupedMmRule(Operation *op) {
  auto product = cast<GroupedMmOp>(op);
  RuleBuilder builder(op);
  Dims rows = builder.factors(product.getSelf().getType().getShape());
  int64_t columns = builder.factor(product.getMat2().getType().getDimSize(2));
  builder.operand(0, rows).operand(1, {ShardingRule::kWhole, rows[1], columns}).operand(2, {rows[0]});
  return builder.result(0, {rows[0], columns}).linearity(Linearity::multilinear, {0, 1}).rule;
}

Rule spmd::aten::groupedOuterRule(Operation *op) {
  auto product = cast<GroupedOuterOp>(op);
  RuleBuilder builder(op);
  Dims rows = builder.factors(product.getSelf().getType().getShape());
  int64_t columns = builder.factor(product.getOther().getType().getDimSize(1));
  builder.operand(0, rows).operand(1, {rows[0], columns}).operand(2, {rows[0]});
  return builder.result(0, {ShardingRule::kWhole, rows[1], columns}).linearity(Linearity::multilinear, {0, 1}).rule;
}

/// Factors for the leading dimensions of a tensor that is normalised over its
/// last `inner` ones: of the tensor itself, and of its statistics.
static std::pair<Dims, Dims> rowFactors(RuleBuilder &builder, RankedTensorType type, int64_t inner) {
  Dims dims = builder.factors(type.getShape()), statistics = dims;
  for (int64_t dim = type.getRank() - inner; dim < type.getRank(); ++dim) {
    dims[dim] = ShardingRule::kWhole;
    statistics[dim] = ShardingRule::kNone;
  }
  return {dims, statistics};
}

Rule spmd::aten::layerNormRule(Operation *op) {
  auto norm = cast<NativeLayerNormOp>(op);
  RuleBuilder builder(op);
  auto [dims, statistics] = rowFactors(builder, norm.getInput().getType(), norm.getNormalizedShape().size());
  return builder.operand(0, dims).result(0, dims).result(1, statistics).result(2, statistics).rule;
}

Rule spmd::aten::layerNormBackwardRule(Operation *op) {
  auto norm = cast<NativeLayerNormBackwardOp>(op);
  RuleBuilder builder(op);
  auto [dims, statistics] = rowFactors(builder, norm.getInput().getType(), norm.getNormalizedShape().size());
  builder.operand(0, dims).operand(1, dims).operand(2, statistics).operand(3, statistics);
  if (norm.getGradInput())
    builder.result(0, dims);
  return builder.rule;
}

Rule spmd::aten::embeddingRule(Operation *op) {
  auto embedding = cast<EmbeddingOp>(op);
  RuleBuilder builder(op);
  Dims dims = builder.factors(embedding.getResult().getType().getShape());
  builder.operand(0, {ShardingRule::kWhole, dims.back()});
  builder.operand(1, Dims(llvm::ArrayRef(dims).drop_back()));
  return builder.result(0, dims).linearity(Linearity::multilinear, {0}).rule;
}

Rule spmd::aten::embeddingBackwardRule(Operation *op) {
  auto backward = cast<EmbeddingDenseBackwardOp>(op);
  // Frequencies are counted over the whole batch.
  if (backward.getScaleGradByFreq())
    return failure();
  RuleBuilder builder(op);
  Dims dims = builder.factors(backward.getGradOutput().getType().getShape());
  builder.operand(0, dims).operand(1, Dims(llvm::ArrayRef(dims).drop_back()));
  builder.result(0, {ShardingRule::kWhole, dims.back()});
  return builder.linearity(Linearity::multilinear, {0}).rule;
}

/// self of a loss over classes: rows, if it has any, and whole classes.
static Dims classDims(RankedTensorType self, const Dims &rows) {
  Dims dims = rows;
  dims.push_back(ShardingRule::kWhole);
  return self.getRank() == 1 ? Dims{ShardingRule::kWhole} : dims;
}

Rule spmd::aten::nllLossRule(Operation *op) {
  auto loss = cast<NllLossForwardOp>(op);
  if (static_cast<int64_t>(loss.getReduction()) == kMean)
    return failure();
  RuleBuilder builder(op);
  Dims rows = builder.factors(loss.getTarget().getType().getShape());
  builder.operand(0, classDims(loss.getSelf().getType(), rows)).operand(1, rows);
  builder.rule.neutral[1] = static_cast<double>(static_cast<int64_t>(loss.getIgnoreIndex()));
  if (static_cast<int64_t>(loss.getReduction()) == kNoReduction)
    builder.result(0, rows);
  return builder.rule;
}

Rule spmd::aten::nllLossBackwardRule(Operation *op) {
  auto loss = cast<NllLossBackwardOp>(op);
  RuleBuilder builder(op);
  Dims rows = builder.factors(loss.getTarget().getType().getShape());
  Dims classes = classDims(loss.getSelf().getType(), rows);
  if (loss.getGradOutput().getType().getRank() == 1)
    builder.operand(0, rows);
  builder.operand(1, classes).operand(2, rows).result(0, classes);
  // Only the mean divides by the total weight.
  builder.rule.dontCare.back() = static_cast<int64_t>(loss.getReduction()) != kMean;
  return builder.linearity(Linearity::multilinear, {0}).rule;
}

Rule spmd::aten::mseLossRule(Operation *op) {
  auto loss = cast<MseLossOp>(op);
  if (static_cast<int64_t>(loss.getReduction()) == kMean)
    return failure();
  if (static_cast<int64_t>(loss.getReduction()) == kNoReduction)
    return pointwiseRule(op);
  RankedTensorType self = loss.getSelf().getType(), target = loss.getTarget().getType();
  ArrayRef<int64_t> shape = (self.getRank() >= target.getRank() ? self : target).getShape();
  // Operands that are broadcast against each other are not worth a rule.
  if (self.getShape() != target.getShape())
    return failure();
  RuleBuilder builder(op);
  Dims dims = builder.factors(shape);
  return builder.operand(0, dims).operand(1, dims).rule;
}

Rule spmd::aten::mseLossBackwardRule(Operation *op) {
  if (static_cast<int64_t>(cast<MseLossBackwardOp>(op).getReduction()) == kMean)
    return failure();
  return pointwiseRule(op, Linearity::multilinear, {0});
}

/// A mask is broadcast against [batch, heads, queries, keys], whose first two are factors. A size of 1 that is not
/// broadcast is a rank's one row.
static Dims maskDims(RankedTensorType mask, ArrayRef<int64_t> sizes, ArrayRef<int64_t> factors) {
  Dims dims;
  for (int64_t dim = 0; dim < mask.getRank(); ++dim) {
    bool isFactor =
        mask.getRank() == 4 && dim < static_cast<int64_t>(sizes.size()) && mask.getDimSize(dim) == sizes[dim];
    if (isFactor)
      dims.push_back(factors[dim]);
    else
      dims.push_back(mask.getDimSize(dim) == 1 ? ShardingRule::kNone : ShardingRule::kWhole);
  }
  return dims;
}

Rule spmd::aten::attentionRule(Operation *op) {
  if (cast<FloatAttr>(op->getAttr("dropout_p")).getValueAsDouble() != 0)
    return failure();
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape();
  // Each head of keys and values with the heads of queries that share it; one that all of them share is broadcast.
  auto forward = dyn_cast<SdpaOp>(op);
  RankedTensorType key = forward ? forward.getKey().getType() : cast<SdpaBackwardOp>(op).getKey().getType();
  SmallVector<int64_t> sizes(shape.take_front(2)), factors;
  bool isShared = key.getDimSize(1) == 1 && shape[1] != 1;
  factors.push_back(builder.factor(shape[0]));
  factors.push_back(builder.factor(isShared ? shape[1] : key.getDimSize(1)));
  auto perRow = [&](Value value) {
    Dims dims = RuleBuilder::whole(typeOf(value).getRank());
    for (auto [dim, factor] : llvm::enumerate(factors))
      dims[dim] = factor;
    if (isShared && typeOf(value).getDimSize(1) == 1)
      dims[1] = ShardingRule::kNone;
    return dims;
  };
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    builder.operand(index, perRow(operand));
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    builder.result(index, perRow(result));
  Value mask, maskGradient;
  if (forward) {
    mask = forward.getAttnMask();
  } else {
    mask = cast<SdpaBackwardOp>(op).getAttnMask();
    maskGradient = cast<SdpaBackwardOp>(op).getGradMask();
  }
  if (mask)
    builder.operand(indexOf(op, mask), maskDims(typeOf(mask), sizes, factors));
  if (maskGradient)
    builder.result(3, maskDims(typeOf(maskGradient), sizes, factors));
  builder.findSteps();
  return builder.rule;
}
