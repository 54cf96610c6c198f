//===- RuleOracle.cpp - sharding rules against what ops compute -----------===//

#include "spmd/Interpreter/RuleOracle.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Spmd/ReduceKinds.h"
#include "mlir/IR/Verifier.h"
#include "spmd/Interpreter/Compare.h"
#include "spmd/Interpreter/RankRows.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <random>

using namespace mlir;

namespace spmd::interp {
namespace {

constexpr double kTolerance = 1e-12, kCallTolerance = 1e-4;
/// Norms below this count as this: an analytically zero result is compared
/// absolutely. Operands are of magnitude 1.
constexpr double kFloor = 1e-3;

Type withoutEncoding(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType());
}

/// The op alone in a function whose arguments are its operands.
func::FuncOp isolate(Operation *op, ArrayRef<Type> operandTypes, ModuleOp scratch) {
  OpBuilder builder = OpBuilder::atBlockEnd(scratch.getBody());
  SmallVector<Type> resultTypes = llvm::map_to_vector(op->getResultTypes(), withoutEncoding);
  auto function =
      func::FuncOp::create(builder, op->getLoc(), "check", builder.getFunctionType(operandTypes, resultTypes));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  Operation *clone = builder.clone(*op);
  clone->setOperands(block->getArguments());
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), resultTypes))
    result.setType(type);
  func::ReturnOp::create(builder, op->getLoc(), clone->getResults());
  return function;
}

double neutralOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::max:
    return -INFINITY;
  case ReduceKind::min:
    return INFINITY;
  default:
    return 0;
  }
}

class Oracle {
public:
  Oracle(aten::AtenOpInterface op, aten::ShardingRule rule, uint64_t seed)
      : op(op), rule(std::move(rule)), random(seed), scratch(ModuleOp::create(op->getLoc())) {}

  LogicalResult check(RuleCheck &report);

private:
  Tensor draw(Value operand, const IndexUse &use);
  FailureOr<SmallVector<Tensor>> run(func::FuncOp function, ArrayRef<Tensor> operands);
  LogicalResult checkFactor(int64_t factor, int64_t ranks);
  LogicalResult checkSummands(ArrayRef<unsigned> split);
  LogicalResult compare(const Twine &what, ArrayRef<Tensor> got);
  Tensor shardOf(unsigned operand, int64_t factor, int64_t chunk, int64_t rank);
  FailureOr<func::FuncOp> localFunction(int64_t factor, int64_t chunk);

  /// The dim of a value that runs over the factor, or -1.
  static int64_t dimOf(const aten::ShardingRule::Value &value, int64_t factor) {
    auto it = llvm::find(value.dims, factor);
    return it == value.dims.end() ? -1 : it - value.dims.begin();
  }
  ReduceKind kindOf(unsigned result) const {
    return result < rule.resultReduction.size() ? toReduceKind(rule.resultReduction[result]) : ReduceKind::sum;
  }
  /// The first result that contracts the factor, if any.
  std::optional<unsigned> contracting(int64_t factor) const {
    for (unsigned i = 0; i < rule.results.size(); ++i)
      if (dimOf(rule.results[i], factor) < 0)
        return i;
    return std::nullopt;
  }

  aten::AtenOpInterface op;
  aten::ShardingRule rule;
  std::mt19937_64 random;
  OwningOpRef<ModuleOp> scratch;
  func::FuncOp whole;
  SmallVector<Tensor> operands, expected;
};

Tensor Oracle::draw(Value operand, const IndexUse &use) {
  auto type = cast<RankedTensorType>(operand.getType());
  Tensor result(*getDType(type.getElementType()), type.getShape());
  std::uniform_real_distribution<double> real(-1.5, 1.5);
  for (int64_t i = 0, e = result.numel(); i < e; ++i) {
    if (result.isFloating())
      result.set(i, real(random));
    else if (use.ignored && random() % 4 == 0)
      result.set(i, *use.ignored);
    else if (use.bound || result.dtype() == DType::i1)
      result.set(i, random() % use.bound.value_or(2));
    else
      result.set(i, 1 + random() % 3); // not zero: it may divide
  }
  return result;
}

FailureOr<SmallVector<Tensor>> Oracle::run(func::FuncOp function, ArrayRef<Tensor> values) {
  Failure failure;
  return callFunction(function, values, Options(), failure);
}

LogicalResult Oracle::compare(const Twine &what, ArrayRef<Tensor> got) {
  // A function of the user's computes in the types of the program.
  double tolerance = isa<aten::CustomCallOp>(op) ? kCallTolerance : kTolerance;
  for (unsigned i = 0; i < got.size(); ++i) {
    double difference = relativeDifference(got[i], expected[i], kFloor);
    if (!(difference <= tolerance))
      return op->emitError() << "wrong sharding rule: " << what << ", result " << i << " differs by "
                             << llvm::formatv("{0:e2}", difference).str();
  }
  return success();
}

/// A rank's part of an operand.
Tensor Oracle::shardOf(unsigned index, int64_t factor, int64_t chunk, int64_t rank) {
  const Tensor &global = operands[index];
  int64_t dim = dimOf(rule.operands[index], factor);
  if (dim < 0)
    return global;
  chunk *= rule.operands[index].getStep(dim);
  Tensor local = takeRows(global, dim, 1, chunk, rank);
  double fill = NAN;
  if (std::optional<unsigned> result = contracting(factor)) {
    fill = neutralOf(kindOf(*result));
    if (index < rule.neutral.size() && rule.neutral[index])
      fill = *rule.neutral[index];
  } else if (rule.fillsPadding) {
    fill = index < rule.neutral.size() ? rule.neutral[index].value_or(0) : 0;
  } else if (!local.isFloating()) {
    return local;
  }
  int64_t inner = contiguousStrides(local.shape())[dim];
  for (int64_t i = 0, e = local.numel(); i < e; ++i)
    if (rank * chunk + i / inner % chunk >= global.dim(dim))
      local.set(i, fill);
  return local;
}

/// The op with operands, attributes and results of one rank.
FailureOr<func::FuncOp> Oracle::localFunction(int64_t factor, int64_t chunk) {
  auto localType = [&](Type type, const aten::ShardingRule::Value &value) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    Shape shape(tensor.getShape());
    if (int64_t dim = dimOf(value, factor); dim >= 0)
      shape[dim] = chunk * value.getStep(dim);
    return RankedTensorType::get(shape, tensor.getElementType());
  };
  SmallVector<Type> operandTypes, resultTypes;
  for (auto [type, value] : llvm::zip_equal(op->getOperandTypes(), rule.operands))
    operandTypes.push_back(localType(type, value));
  for (auto [type, value] : llvm::zip_equal(op->getResultTypes(), rule.results))
    resultTypes.push_back(localType(type, value));
  func::FuncOp function = isolate(op, operandTypes, *scratch);
  auto local = cast<aten::AtenOpInterface>(function.front().front());
  if (failed(local.localize(resultTypes)))
    return op->emitError() << "wrong sharding rule: factor " << factor << " cannot be localized";
  for (auto [result, type] : llvm::zip_equal(local->getResults(), resultTypes))
    result.setType(type);
  function.setFunctionType(FunctionType::get(op->getContext(), operandTypes, resultTypes));
  if (failed(verify(function)))
    return op->emitError() << "wrong sharding rule: the op localized to factor " << factor << " does not verify";
  return function;
}

LogicalResult Oracle::checkFactor(int64_t factor, int64_t ranks) {
  int64_t size = rule.factorSizes[factor], chunk = llvm::divideCeil(size, ranks);
  if (rule.contractsNoPadding && contracting(factor) && size % ranks != 0)
    return success();
  FailureOr<func::FuncOp> function = localFunction(factor, chunk);
  if (failed(function))
    return failure();
  SmallVector<SmallVector<Tensor>> perResult(op->getNumResults());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<Tensor> locals;
    for (unsigned i = 0; i < operands.size(); ++i) {
      locals.push_back(shardOf(i, factor, chunk, rank));
      if (i < rule.dontCare.size() && rule.dontCare[i])
        locals.back() = Tensor::full(locals.back().dtype(), locals.back().shape(), 1 + rank);
    }
    auto results = run(*function, locals);
    if (failed(results))
      return op->emitError() << "wrong sharding rule: rank " << rank << " of " << ranks << " cannot run with factor "
                             << factor << " cut";
    for (auto [list, result] : llvm::zip_equal(perResult, *results))
      list.push_back(std::move(result));
  }
  function->erase();
  SmallVector<Tensor> joined;
  for (auto [i, parts] : llvm::enumerate(perResult)) {
    int64_t dim = dimOf(rule.results[i], factor);
    joined.push_back(dim < 0 ? combine(parts, kindOf(i), /*roundEach=*/false)
                             : joinRows(parts, dim, 1, size * rule.results[i].getStep(dim)));
  }
  return compare("with factor " + Twine(factor) + " of size " + Twine(size) + " cut in " + Twine(ranks), joined);
}

/// The listed operands are written as sums of two, the op is run on each.
LogicalResult Oracle::checkSummands(ArrayRef<unsigned> split) {
  SmallVector<SmallVector<Tensor>> parts(2, operands);
  for (unsigned i : split) {
    Tensor first = draw(op->getOperand(i), {}), rest = operands[i];
    Tensor second(rest.dtype(), rest.shape());
    for (int64_t e = 0; e < rest.numel(); ++e)
      second.set(e, rest.at(e) - first.at(e));
    parts[0][i] = first;
    parts[1][i] = second;
  }
  SmallVector<SmallVector<Tensor>> results;
  for (ArrayRef<Tensor> part : parts) {
    auto values = run(whole, part);
    if (failed(values))
      return op->emitError() << "wrong sharding rule: the op cannot run on summands of its operands";
    results.push_back(std::move(*values));
  }
  SmallVector<Tensor> sums;
  for (auto [a, b] : llvm::zip_equal(results[0], results[1]))
    sums.push_back(combine({a, b}, ReduceKind::sum, /*roundEach=*/false));
  return compare(split.size() == 1 ? "with operand " + Twine(split[0]) + " as a sum of two"
                                   : "with all operands as sums of two",
                 sums);
}

LogicalResult Oracle::check(RuleCheck &report) {
  whole = isolate(op, llvm::map_to_vector(op->getOperandTypes(), withoutEncoding), *scratch);
  for (BlockArgument argument : whole.getArguments())
    operands.push_back(draw(argument, findIndexUse(argument)));
  auto results = run(whole, operands);
  if (failed(results))
    return failure();
  expected = std::move(*results);

  if (rule.operands.size() != op->getNumOperands() || rule.results.size() != op->getNumResults())
    return op->emitError() << "wrong sharding rule: it has " << rule.operands.size() << " operands and "
                           << rule.results.size() << " results";
  for (int64_t factor = 0, e = rule.factorSizes.size(); factor < e; ++factor) {
    auto carries = [&](const aten::ShardingRule::Value &value) { return dimOf(value, factor) >= 0; };
    if (llvm::none_of(rule.operands, carries) && llvm::none_of(rule.results, carries))
      continue;
    ++report.factors;
    for (int64_t ranks : {2, 3}) {
      if (failed(checkFactor(factor, ranks)))
        return failure();
      ++report.comparisons;
    }
  }
  if (rule.linearity == aten::Linearity::additive) {
    auto all = llvm::to_vector(llvm::seq<unsigned>(0, operands.size()));
    ++report.comparisons;
    return checkSummands(all);
  }
  if (rule.linearity == aten::Linearity::multilinear)
    for (unsigned operand : rule.multilinearOperands) {
      if (failed(checkSummands(operand)))
        return failure();
      ++report.comparisons;
    }
  return success();
}

} // namespace

FailureOr<RuleCheck> checkShardingRule(aten::AtenOpInterface op, const aten::ShardingRule &rule, uint64_t seed) {
  RuleCheck report{op->getName().getStringRef().str(), true, 0, 0};
  if (failed(Oracle(op, rule, seed).check(report)))
    return failure();
  return report;
}

FailureOr<SmallVector<RuleCheck>> checkShardingRules(ModuleOp module, uint64_t seed) {
  SmallVector<RuleCheck> reports;
  bool allRight = true;
  module.walk([&](aten::AtenOpInterface op) {
    if (op->hasAttr("unit"))
      return;
    FailureOr<aten::ShardingRule> rule = failure();
    if (!op.isViewLike())
      rule = op.getShardingRule();
    if (failed(rule)) {
      reports.push_back({op->getName().getStringRef().str(), false, 0, 0});
      return;
    }
    FailureOr<RuleCheck> report = checkShardingRule(op, *rule, seed);
    allRight &= succeeded(report);
    if (succeeded(report))
      reports.push_back(*report);
  });
  if (!allRight)
    return failure();
  return reports;
}

} // namespace spmd::interp
