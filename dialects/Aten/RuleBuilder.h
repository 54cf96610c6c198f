//===- RuleBuilder.h - Writing down a sharding rule -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_RULEBUILDER_H
#define SPMD_DIALECTS_ATEN_RULEBUILDER_H

#include "dialects/Aten/ShardingRule.h"
#include "dialects/Aten/TensorType.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace spmd::aten {

using Dims = llvm::SmallVector<int64_t>;

/// A rule for `op` that starts with every dimension of every operand and
/// result whole; what is not said stays that way.
class RuleBuilder {
public:
  explicit RuleBuilder(mlir::Operation *op) : op(op) {
    for (mlir::Value operand : op->getOperands())
      rule.operands.push_back({whole(typeOf(operand).getRank()), {}});
    for (mlir::Value result : op->getResults())
      rule.results.push_back({whole(typeOf(result).getRank()), {}});
    rule.resultReduction.assign(op->getNumResults(), ReductionKind::sum);
    rule.neutral.resize(op->getNumOperands());
    rule.dontCare.assign(op->getNumOperands(), false);
  }

  static Dims whole(int64_t rank) { return Dims(rank, ShardingRule::kWhole); }

  /// A new factor.
  int64_t factor(int64_t size) {
    rule.factorSizes.push_back(size);
    return rule.factorSizes.size() - 1;
  }
  /// A new factor for each dimension.
  Dims factors(llvm::ArrayRef<int64_t> sizes) {
    Dims dims;
    for (int64_t size : sizes)
      dims.push_back(factor(size));
    return dims;
  }

  /// `dims` of a tensor of shape `whole`, for a tensor that is broadcast
  /// against it, aligned at the right.
  static Dims broadcast(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims) {
    Dims aligned;
    int64_t missing = static_cast<int64_t>(shape.size()) - type.getRank();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      aligned.push_back(type.getDimSize(dim) == shape[dim + missing] ? dims[dim + missing] : ShardingRule::kNone);
    return aligned;
  }

  RuleBuilder &operand(unsigned index, Dims dims) {
    rule.operands[index].dims = std::move(dims);
    return *this;
  }
  RuleBuilder &result(unsigned index, Dims dims) {
    rule.results[index].dims = std::move(dims);
    return *this;
  }
  /// Where a dimension has more elements than its factor steps, so many of them go together.
  void findSteps() {
    auto find = [&](ShardingRule::Value &value, llvm::ArrayRef<int64_t> shape) {
      for (auto [dim, factor] : llvm::enumerate(value.dims)) {
        if (factor < 0 || rule.factorSizes[factor] == 0 || shape[dim] == rule.factorSizes[factor])
          continue;
        value.steps.resize(shape.size(), 1);
        value.steps[dim] = shape[dim] / rule.factorSizes[factor];
      }
    };
    for (auto [value, operand] : llvm::zip_equal(rule.operands, op->getOperands()))
      find(value, typeOf(operand).getShape());
    for (auto [value, result] : llvm::zip_equal(rule.results, op->getResults()))
      find(value, typeOf(result).getShape());
  }
  /// What the op is linear in, as far as it holds numbers: a truth value is no sum, and a sum of truth values none.
  RuleBuilder &linearity(Linearity kind, llvm::ArrayRef<unsigned> operands = {}) {
    if (llvm::any_of(op->getResults(), isBool) ||
        (kind == Linearity::additive && llvm::any_of(op->getOperands(), isBool)))
      return *this;
    rule.linearity = kind;
    for (unsigned operand : operands)
      if (!isBool(op->getOperand(operand)))
        rule.multilinearOperands.push_back(operand);
    return *this;
  }

  ShardingRule rule;

private:
  static bool isBool(mlir::Value value) { return typeOf(value).getElementType().isInteger(1); }

  mlir::Operation *op;
};

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_RULEBUILDER_H
