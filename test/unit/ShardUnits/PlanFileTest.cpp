//===- PlanFileTest.cpp - rules with options per unit ---------------------===//

#include "TestTree.h"

using namespace spmd;
using namespace spmd::units;

/// The units of a plan with these members, or what is wrong with it.
static std::string plan(const std::string &members, ShardUnits *result = nullptr) {
  Request request;
  runtime::JsonDocument document("plan", R"({"format": "spmd-shard-units", "version": 1, )" + members + "}");
  readPlan(document.root(), request);
  if (!document.status().ok())
    return document.status().message;
  if (result)
    *result = *assignShardUnits(makeBlocks(), request);
  return names(makeBlocks(), request);
}

TEST(PlanFile, FirstRuleDecides) {
  EXPECT_EQ(plan(R"("rules": [{"module": "h.0", "unit": false}, {"class": "Block"}])"), "h.1 (root)");
  EXPECT_EQ(plan(R"("rules": [{"class": ["Block", "Linear"]}, {"module": "h.0", "unit": false}])"),
            "h.0.fc h.0 h.1.fc h.1 head (root)");
}
TEST(PlanFile, SeveralModulesAreOneUnit) {
  EXPECT_EQ(plan(R"("rules": [{"module": ["h.1.fc", "head"]}])"), "h.1.fc (root)");
}
TEST(PlanFile, OptionsPerUnit) {
  ShardUnits units;
  plan(R"("options": {"prefetch": 0}, "rules": [
         {"name": "h.0", "options": {"mode": "replicate"}},
         {"policy": "class:Block", "options": {"precision": {"param": "bf16"}, "prefetch": 1}},
         {"module": "", "options": {"reshard_after_forward": false}}])",
       &units);
  ASSERT_EQ(units.units.size(), 3u);
  EXPECT_EQ(units.units[0].options.mode, Mode::replicate);
  EXPECT_EQ(units.units[0].options.prefetch, 0);
  EXPECT_EQ(units.units[1].options.prefetch, 1);
  // As in PyTorch, gradients are reduced in the dtype of the computation when nothing else is said.
  EXPECT_EQ(units.units[1].options.precision->reduce, runtime::DType::BF16);
  EXPECT_EQ(units.units[2].options.reshardAfterForward, UnitOptions::kKeep);
}
TEST(PlanFile, Errors) {
  EXPECT_EQ(plan(R"("rules": [{"class": "Block", "name": "h"}])"),
            "plan: /rules/0/name: a rule has one of module, class, name and policy; this one has class, too");
  EXPECT_EQ(plan(R"("rules": [{"class": []}])"), "plan: /rules/0/class: expected at least one name");
  EXPECT_EQ(plan(R"("rules": [{"class": 3}])"), "plan: /rules/0/class: expected a string, found 3");
  EXPECT_EQ(plan(R"("rules": [{"module": "", "options": {"prefetch": 2}}])"),
            "plan: /rules/0/options/prefetch: expected 0 or 1, found 2");
  EXPECT_EQ(
      plan(R"("rules": [{"module": "", "options": {"reshard_after_forward": 0}}])"),
      "plan: /rules/0/options/reshard_after_forward: expected true, false or a number of ranks, at least 1; found "
      "0");
  EXPECT_EQ(
      plan(R"("rules": [{"module": "", "options": {"precision": {"weights": "bf16"}}}])"),
      "plan: /rules/0/options/precision/weights: unknown dtype of mixed precision; allowed: param, reduce, grad, buffer, "
      "output, master");
  EXPECT_EQ(plan(R"("rules": [{"module": "h.5"}])"), "/rules/0: no module is called 'h.5' (closest: h.0, h.1, h)");
}
TEST(PlanFile, ReshardGroups) {
  UnitOptions options;
  options.reshardAfterForward = 4;
  EXPECT_TRUE(resolveOptions(options, Mesh::of(8), "u").ok());
  EXPECT_EQ(options.reshardAfterForward, 4);
  EXPECT_TRUE(resolveOptions(options, Mesh::of(4), "u").ok());
  EXPECT_EQ(options.reshardAfterForward, UnitOptions::kReshard);
  options.reshardAfterForward = 3;
  EXPECT_EQ(resolveOptions(options, Mesh::of(4), "u").message,
            "unit 'u': reshard_after_forward is 3, expected a factor of the 4 ranks");
}
