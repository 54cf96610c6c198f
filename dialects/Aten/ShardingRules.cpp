//===- ShardingRules.cpp - Rules of pointwise ops and reductions ----------===//

#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/RuleBuilder.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

Rule spmd::aten::noRule(Operation *) { return failure(); }

Rule spmd::aten::pointwiseRule(Operation *op, Linearity linearity, ArrayRef<unsigned> multilinearOperands) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  Dims dims = builder.factors(shape);
  builder.result(0, dims);
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    builder.operand(index, RuleBuilder::broadcast(typeOf(operand), shape, dims));
  return builder.linearity(linearity, multilinearOperands).rule;
}

Rule spmd::aten::castRule(Operation *op) {
  bool toFloat = isa<FloatType>(typeOf(op->getResult(0)).getElementType());
  return pointwiseRule(op, toFloat ? Linearity::additive : Linearity::none);
}

Rule spmd::aten::einsumRule(Operation *op, StringRef dims, Linearity linearity,
                            ArrayRef<unsigned> multilinearOperands) {
  RuleBuilder builder(op);
  SmallVector<char> letters;
  auto parse = [&](StringRef word, Value value) {
    Dims entry;
    for (auto [dim, letter] : llvm::enumerate(word)) {
      auto *known = llvm::find(letters, letter);
      entry.push_back(known - letters.begin());
      if (known == letters.end()) {
        letters.push_back(letter);
        builder.factor(typeOf(value).getDimSize(dim));
      }
    }
    return entry;
  };
  auto [ins, outs] = dims.split("->");
  SmallVector<StringRef> words;
  ins.split(words, ',');
  for (auto [index, word] : llvm::enumerate(words))
    builder.operand(index, parse(word, op->getOperand(index)));
  builder.result(0, parse(outs, op->getResult(0)));
  return builder.linearity(linearity, multilinearOperands).rule;
}

/// The dimensions in attribute `dim`, one or a list.
static Dims namedDims(Operation *op) {
  Attribute attr = op->getAttr("dim");
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attr))
    return Dims(list.asArrayRef());
  return {cast<IntegerAttr>(attr).getInt()};
}

Rule spmd::aten::wholeDimRule(Operation *op, Linearity linearity) {
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getOperand(0)).getShape());
  for (int64_t dim : namedDims(op))
    dims[dim] = ShardingRule::kWhole;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    builder.operand(i, dims);
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    builder.result(i, dims);
  return builder.linearity(linearity).rule;
}

/// Operand dimensions without the reduced ones; with keepdim, those are ones.
static Dims reducedDims(Operation *op, ArrayRef<int64_t> dims) {
  Dims reduced = namedDims(op), kept;
  bool keepdim = cast<BoolAttr>(op->getAttr("keepdim")).getValue();
  for (auto [index, factor] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(reduced, static_cast<int64_t>(index)))
      kept.push_back(factor);
    else if (keepdim)
      kept.push_back(ShardingRule::kNone);
  }
  return kept;
}

Rule spmd::aten::reductionRule(Operation *op, ReductionKind kind, Linearity linearity) {
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getOperand(0)).getShape());
  builder.operand(0, dims).result(0, reducedDims(op, dims));
  builder.rule.resultReduction[0] = kind;
  return builder.linearity(linearity).rule;
}

Rule spmd::aten::wholeReductionRule(Operation *op, Linearity linearity) {
  RuleBuilder builder(op);
  Dims dims = builder.factors(typeOf(op->getOperand(0)).getShape());
  for (int64_t dim : namedDims(op))
    dims[dim] = ShardingRule::kWhole;
  builder.operand(0, dims);
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    builder.result(i, reducedDims(op, dims));
  return builder.linearity(linearity).rule;
}

Rule spmd::aten::meanRule(Operation *op) {
  // A variance is not linear.
  return wholeReductionRule(op, isa<MeanDimOp>(op) ? Linearity::additive : Linearity::none);
}

Rule spmd::aten::normRule(Operation *op) {
  double order = getScalarValue(cast<LinalgVectorNormOp>(op).getOrd());
  if (order == 2)
    return reductionRule(op, ReductionKind::norm2);
  if (!std::isinf(order))
    return wholeReductionRule(op, Linearity::none);
  Rule rule = reductionRule(op, order > 0 ? ReductionKind::max : ReductionKind::min);
  // The largest magnitude of nothing is 0; the fill for max would be -inf,
  // whose magnitude is not.
  if (order > 0)
    rule->neutral[0] = 0.0;
  return rule;
}
