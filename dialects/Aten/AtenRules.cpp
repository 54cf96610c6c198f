//===- AtenRules.cpp - Bodies of the ops' interface methods ---------------===//

#include "dialects/Aten/AtenRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<ShardingRule> spmd::aten::noRule(Operation *) { return failure(); }

FailureOr<ShardingRule> spmd::aten::pointwiseRule(Operation *op, Linearity linearity,
                                                  ArrayRef<unsigned> multilinearOperands) {
  RankedTensorType out = tensorType(op->getResult(0));
  ShardingRule rule;
  rule.factorSizes.assign(out.getShape().begin(), out.getShape().end());
  ShardingRule::Value result;
  for (int64_t dim = 0; dim < out.getRank(); ++dim)
    result.dims.push_back(dim);
  rule.results.push_back(result);
  for (Value operand : op->getOperands()) {
    RankedTensorType in = tensorType(operand);
    int64_t missing = out.getRank() - in.getRank();
    ShardingRule::Value value;
    for (int64_t dim = 0; dim < in.getRank(); ++dim)
      value.dims.push_back(in.getDimSize(dim) == out.getDimSize(dim + missing) ? dim + missing : ShardingRule::kNone);
    rule.operands.push_back(value);
  }
  rule.resultReduction.assign(1, ReductionKind::sum);
  rule.linearity = linearity;
  rule.multilinearOperands.append(multilinearOperands.begin(), multilinearOperands.end());
  rule.neutral.resize(op->getNumOperands());
  rule.dontCare.assign(op->getNumOperands(), false);
  return rule;
}

FailureOr<ShardingRule> spmd::aten::castRule(Operation *op) {
  bool toFloat = isa<FloatType>(tensorType(op->getResult(0)).getElementType());
  return pointwiseRule(op, toFloat ? Linearity::additive : Linearity::none);
}

FailureOr<ShardingRule> spmd::aten::einsumRule(Operation *op, StringRef dims, Linearity linearity,
                                               ArrayRef<unsigned> multilinearOperands) {
  ShardingRule rule;
  llvm::SmallVector<char> letters;
  auto parse = [&](StringRef side, ValueRange values, SmallVectorImpl<ShardingRule::Value> &into) {
    SmallVector<StringRef> words;
    side.split(words, ',');
    for (auto [word, value] : llvm::zip_equal(words, values)) {
      ShardingRule::Value entry;
      for (auto [dim, letter] : llvm::enumerate(word)) {
        auto *known = llvm::find(letters, letter);
        entry.dims.push_back(known - letters.begin());
        if (known == letters.end()) {
          letters.push_back(letter);
          rule.factorSizes.push_back(tensorType(value).getDimSize(dim));
        }
      }
      into.push_back(entry);
    }
  };
  auto [ins, outs] = dims.split("->");
  parse(ins, op->getOperands(), rule.operands);
  parse(outs, op->getResults(), rule.results);
  rule.resultReduction.assign(op->getNumResults(), ReductionKind::sum);
  rule.linearity = linearity;
  rule.multilinearOperands.append(multilinearOperands.begin(), multilinearOperands.end());
  rule.neutral.resize(op->getNumOperands());
  rule.dontCare.assign(op->getNumOperands(), false);
  return rule;
}

FailureOr<ShardingRule> spmd::aten::foreachRule(Operation *) { return failure(); }

double spmd::aten::noFlops(Operation *) { return 0; }

double spmd::aten::resultElements(Operation *op) {
  return op->getNumResults() ? tensorType(op->getResult(0)).getNumElements() : 0;
}

double spmd::aten::operandElements(Operation *op) {
  return op->getNumOperands() ? tensorType(op->getOperand(0)).getNumElements() : 0;
}

double spmd::aten::contractionFlops(Operation *op) {
  Value left = op->getOperand(op->getNumOperands() - 2);
  double k = tensorType(left).getShape().back();
  return 2 * k * resultElements(op);
}

LogicalResult spmd::aten::keepAttributes(Operation *, TypeRange) { return success(); }

LogicalResult spmd::aten::localizeShape(Operation *op, StringRef attr, TypeRange types) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(types.front()).getShape();
  op->setAttr(attr, DenseI64ArrayAttr::get(op->getContext(), shape));
  return success();
}

LogicalResult spmd::aten::localizeSlice(Operation *, TypeRange) { return failure(); }
