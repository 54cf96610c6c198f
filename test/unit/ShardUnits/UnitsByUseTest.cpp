//===- UnitsByUseTest.cpp - the policy `auto` -----------------------------===//

#include "TestTree.h"

using namespace spmd;
using namespace spmd::units;

static const char *kList = "torch.nn.modules.container.ModuleList";
static const char *kLinear = "torch.nn.modules.linear.Linear";

/// "embed | h.0 | h.1 norm": the modules of each unit but the root.
static std::string describeUnits(const ModuleTree &tree, Request request = makeRequest("auto")) {
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request);
  if (!units)
    return units.error().message;
  std::string text;
  for (const Unit &unit : units->units) {
    if (unit.modules.front() == 0)
      continue;
    text += text.empty() ? "" : " | ";
    for (size_t module : unit.modules)
      text += (module == unit.modules.front() ? "" : " ") + tree.getModule(module).path;
  }
  return text;
}

/// An embedding, three blocks, a norm and a head.
static std::vector<TestModule> makeTransformer() {
  return {{"", "m.Net", 0, {"embed", "h", "norm", "head"}},
          {"embed", "m.Embedding", 1000},
          {"h", kList, 0, {"h.0", "h.1", "h.2"}},
          {"h.0", "m.Block", 400},
          {"h.1", "m.Block", 400},
          {"h.2", "m.Block", 400},
          {"norm", "m.Norm", 4},
          {"head", kLinear, 1000}};
}

TEST(UnitsByUse, BlocksAndWhatIsAroundThem) {
  EXPECT_EQ(describeUnits(makeTree(makeTransformer())), "embed | h.0 | h.1 | h.2 | norm head");
}

TEST(UnitsByUse, BlocksMayDiffer) {
  std::vector<TestModule> modules = makeTransformer();
  modules[4].className = "m.Other";
  EXPECT_EQ(describeUnits(makeTree(modules)), "embed | h.0 | h.1 | h.2 | norm head");
}

TEST(UnitsByUse, SmallModulesJoinWhatIsUsedNext) {
  // Registered behind the blocks, used before them.
  std::vector<TestModule> modules = makeTransformer();
  for (TestModule &module : modules)
    module.numel = 0;
  std::vector<ParameterRecord> parameters;
  std::vector<std::pair<std::string, std::string>> owners;
  int64_t use = 0;
  for (auto [path, numel] : {std::pair<const char *, int64_t>{"embed", 1000}, {"norm", 4}, {"h.0", 400}, {"h.1", 400},
                             {"h.2", 400}, {"head", 1000}}) {
    ParameterRecord parameter{std::string(path) + ".w", {}, {numel}};
    parameter.firstUse = use++;
    owners.emplace_back(path, parameter.name);
    parameters.push_back(std::move(parameter));
  }
  EXPECT_EQ(describeUnits(makeTree(modules, parameters, owners)), "embed | norm h.0 | h.1 | h.2 | head");
}

TEST(UnitsByUse, LastSmallModuleJoinsWhatIsUsedBefore) {
  std::vector<TestModule> modules = makeTransformer();
  modules.pop_back();
  modules[0].children.pop_back();
  EXPECT_EQ(describeUnits(makeTree(modules)), "embed | h.0 | h.1 | h.2 norm");
}

TEST(UnitsByUse, SharedParametersAreAUnitOfTheirOwn) {
  std::vector<TestModule> modules = makeTransformer();
  modules[1].numel = modules.back().numel = 0;
  ModuleTree tree = makeTree(modules, {{"w", {"head.w"}, {1000}}}, {{"embed", "w"}, {"head", "w"}});
  EXPECT_EQ(describeUnits(tree), "embed head | h.0 | h.1 | h.2 norm");
}

TEST(UnitsByUse, ModulesThatBlocksShareAreNoPartOfThem) {
  // Registered in the root as well, and in the blocks alone.
  std::vector<TestModule> modules = makeTransformer();
  for (size_t block : {3, 4, 5})
    modules[block].children = {"rel"};
  modules.push_back({"rel", "m.Bias", 300});
  EXPECT_EQ(describeUnits(makeTree(modules)), "embed | h.0 | h.1 | h.2 | norm head");
  modules[0].children.push_back("rel");
  EXPECT_EQ(describeUnits(makeTree(modules)), "embed | rel | h.0 | h.1 | h.2 | norm head");
}

TEST(UnitsByUse, FrozenModulesStayApart) {
  std::vector<TestModule> modules = makeTransformer();
  modules[6].numel = 0;
  ParameterRecord frozen{"norm.w", {}, {4}};
  frozen.trainable = frozen.updated = false;
  EXPECT_EQ(describeUnits(makeTree(modules, {frozen}, {{"norm", "norm.w"}})), "embed | h.0 | h.1 | h.2 | norm | head");
}

TEST(UnitsByUse, StagesAreCutIntoTheirBlocks) {
  std::vector<TestModule> modules = {{"", "m.Net", 10, {"layers"}},
                                     {"layers", kList, 0, {"layers.0", "layers.1"}},
                                     {"layers.0", "m.Stage", 100, {"layers.0.blocks"}},
                                     {"layers.0.blocks", kList, 0, {"layers.0.blocks.0", "layers.0.blocks.1"}},
                                     {"layers.0.blocks.0", "m.Block", 100},
                                     {"layers.0.blocks.1", "m.Block", 100},
                                     {"layers.1", "m.Stage", 30, {"layers.1.blocks"}},
                                     {"layers.1.blocks", kList, 0, {}}};
  for (int i = 0; i < 4; ++i) {
    std::string path = "layers.1.blocks." + std::to_string(i);
    modules[7].children.push_back(path);
    modules.push_back({path, "m.Block", 200});
  }
  EXPECT_EQ(describeUnits(makeTree(modules)),
            "layers.0 | layers.1.blocks.0 | layers.1.blocks.1 | layers.1.blocks.2 | layers.1.blocks.3");
}

TEST(UnitsByUse, IgnoredModulesAreInNoUnit) {
  Request request = makeRequest("auto");
  request.ignoredModules = {"h.1"};
  request.ignoredParameters = {"norm.w"};
  EXPECT_EQ(describeUnits(makeTree(makeTransformer()), request), "embed | h.0 | h.2 | head");
}

TEST(UnitsByUse, ExemptClassesAreLeftToTheirRule) {
  Request request = makeRequest("auto");
  request.defaults.precision.emplace().param = runtime::DType::BF16;
  request.exemptClasses = {"m.Norm"};
  EXPECT_EQ(describeUnits(makeTree(makeTransformer()), request), "embed | h.0 | h.1 | h.2 | norm | head");
}

TEST(UnitsByUse, AnnotationsWin) {
  Request request = makeRequest("auto");
  request.annotations.push_back({{"h.1"}, {}, {}});
  EXPECT_EQ(describeUnits(makeTree(makeTransformer()), request), "h.1");
}

TEST(UnitsByUse, AModelWithoutPiecesIsOneUnit) {
  EXPECT_EQ(names(makeTree({{"", "m.Net", 10}}), makeRequest("auto")), "(root)");
}

TEST(FirstUses, ACastIsNoUse) {
  FirstUses uses(2);
  uses.setParameter(1, 0);
  uses.setParameter(2, 1);
  uses.addOp({1}, {10});     // a cast of the first
  uses.addOp({2, 20}, {21}); // reads the second
  uses.addOp({10, 21}, {22});
  EXPECT_EQ(uses.get(1), 1);
  EXPECT_EQ(uses.get(0), 2);
  EXPECT_EQ(FirstUses(1).get(0), FirstUses::kNone);
}
