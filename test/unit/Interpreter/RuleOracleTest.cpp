//===- RuleOracleTest.cpp - wrong sharding rules are found ----------------===//

#include "spmd/Interpreter/RuleOracle.h"
#include "spmd/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace spmd;
using namespace spmd::interp;

namespace {

class RuleOracle : public ::testing::Test {
protected:
  RuleOracle() : context(makeRegistry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  /// The only aten op of the text.
  aten::AtenOpInterface parse(llvm::StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    aten::AtenOpInterface op;
    if (module)
      module->walk([&](aten::AtenOpInterface found) { op = found; });
    return op;
  }

  /// What the oracle says of a rule; empty when it finds nothing wrong.
  std::string verdict(aten::AtenOpInterface op, const aten::ShardingRule &rule) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
    FailureOr<RuleCheck> report = checkShardingRule(op, rule, /*seed=*/1);
    EXPECT_EQ(failed(report), !message.empty());
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr llvm::StringLiteral kMm = R"(
  func.func @f(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
    %0 = aten.mm %a, %b : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  })";

TEST_F(RuleOracle, AcceptsTheRuleOfMm) {
  aten::AtenOpInterface op = parse(kMm);
  EXPECT_EQ(verdict(op, *op.getShardingRule()), "");
}

TEST_F(RuleOracle, FindsAWrongReduction) {
  aten::AtenOpInterface op = parse(kMm);
  aten::ShardingRule rule = *op.getShardingRule();
  rule.resultReduction = {aten::ReductionKind::max};
  EXPECT_NE(verdict(op, rule).find("wrong sharding rule: with factor"), std::string::npos);
}

TEST_F(RuleOracle, FindsRowsThatAreNotNeutral) {
  aten::AtenOpInterface op = parse(kMm);
  aten::ShardingRule rule = *op.getShardingRule();
  rule.neutral = {1.0, 1.0};
  // Only a size that 2 or 3 does not divide has padding; 5 is divided by neither.
  EXPECT_NE(verdict(op, rule).find("of size 5 cut in 2"), std::string::npos);
}

TEST_F(RuleOracle, FindsFactorsThatAreNotTheSameLoop) {
  aten::AtenOpInterface op = parse(kMm);
  aten::ShardingRule rule = *op.getShardingRule();
  std::swap(rule.results[0].dims[0], rule.results[0].dims[1]);
  EXPECT_NE(verdict(op, rule), "");
}

TEST_F(RuleOracle, FindsAFalseClaimOfLinearity) {
  aten::AtenOpInterface op = parse(kMm);
  aten::ShardingRule rule = *op.getShardingRule();
  rule.linearity = aten::Linearity::additive;
  EXPECT_NE(verdict(op, rule).find("with all operands as sums of two"), std::string::npos);
}

TEST_F(RuleOracle, FindsADimThatMustBeWhole) {
  aten::AtenOpInterface op = parse(R"(
    func.func @f(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
      %0 = aten._softmax %a {dim = 1 : i64, half_to_float = false} : (tensor<4x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    })");
  aten::ShardingRule rule = *op.getShardingRule();
  EXPECT_EQ(verdict(op, rule), "");
  rule.factorSizes = {4, 6};
  rule.operands[0].dims = rule.results[0].dims = {0, 1};
  EXPECT_NE(verdict(op, rule).find("with factor 1 of size 6"), std::string::npos);
}

TEST_F(RuleOracle, FindsAnOperandThatMatters) {
  aten::AtenOpInterface op = parse(kMm);
  aten::ShardingRule rule = *op.getShardingRule();
  rule.dontCare = {false, true};
  EXPECT_NE(verdict(op, rule), "");
}

/// Every rule of the ops in the dialect's round-trip tests must hold; test/Coverage checks those of all ops that a
/// capture of PyTorch's own samples has.
TEST_F(RuleOracle, RulesOfTheDialectHold) {
  std::set<std::string> seen, withRule;
  for (llvm::StringRef group : {"pointwise", "compare", "view", "reduce", "heavy", "optim"}) {
    std::string path = (SPMD_SOURCE_DIR "/test/dialects/Aten/roundtrip-" + group + ".mlir").str();
    module = parseSourceFile<ModuleOp>(path, &context);
    ASSERT_TRUE(module) << path;
    auto reports = checkShardingRules(*module, /*seed=*/2);
    ASSERT_TRUE(succeeded(reports)) << path;
    for (const RuleCheck &report : *reports) {
      seen.insert(report.op);
      if (report.hasRule)
        withRule.insert(report.op);
    }
  }
  // Views map positions, list ops map list positions, these make one certain tensor, and this one's sample has
  // reduction mean (test/Interpreter/check-rules.mlir has the others).
  for (const char *name : {"aten.view", "aten.unsqueeze", "aten.squeeze.dim", "aten.arange.start_step", "aten.constant",
                           "aten.mse_loss_backward"})
    EXPECT_TRUE(withRule.insert(name).second) << name << " has a rule";
  for (const std::string &name : seen) {
    llvm::StringRef op = name;
    if (!op.starts_with("aten._foreach_") && !op.starts_with("aten._fused_"))
      EXPECT_TRUE(withRule.count(name)) << name << " has no rule";
  }
}

} // namespace
