//===- PolicyTest.cpp - each rule by which a module becomes a unit --------===//

#include "TestTree.h"

using namespace spmd;
using namespace spmd::units;

static std::string choose(const std::string &policy) { return names(makeBlocks(), makeRequest(policy)); }

TEST(Policy, RootIsAlwaysAUnit) { EXPECT_EQ(choose("none"), "(root)"); }
TEST(Policy, AlwaysIsPostOrder) { EXPECT_EQ(choose("always"), "h.0.fc h.0 h.1.fc h.1 h head (root)"); }
TEST(Policy, ClassesMatchWithSubclasses) { EXPECT_EQ(choose("class:Block"), "h.0 h.1 (root)"); }
TEST(Policy, SubclassAlone) { EXPECT_EQ(choose("class:Wide"), "h.1 (root)"); }
TEST(Policy, QualifiedNamesMatchFromTheEnd) {
  EXPECT_EQ(choose("class:m.Block"), "h.0 h.1 (root)");
  EXPECT_EQ(choose("class:linear.Linear"), "h.0.fc h.1.fc head (root)");
  EXPECT_EQ(choose("class:lock").substr(0, 26), "no module has class 'lock'");
}
TEST(Policy, NamesMatchWhole) {
  EXPECT_EQ(choose("name:h\\.\\d"), "h.0 h.1 (root)");
  EXPECT_EQ(choose("name:h.*"), "h.0.fc h.0 h.1.fc h.1 h head (root)");
}
TEST(Policy, AnyOf) { EXPECT_EQ(choose("or(class:Wide;name:head)"), "h.1 head (root)"); }

// h has 60, h.0 and h.1 30 each, their fc 20, head 40.
TEST(Policy, SizeTakesTheSmallestThatIsLargeEnough) {
  EXPECT_EQ(choose("size:20"), "h.0.fc h.1.fc head (root)");
  EXPECT_EQ(choose("size:30"), "h.0 h.1 head (root)");
}
TEST(Policy, SizeExcludesContainers) {
  EXPECT_EQ(choose("size:40"), "head (root)");
  EXPECT_EQ(choose("size:40,exclude="), "h head (root)");
  EXPECT_EQ(choose("size:20,exclude=Linear"), "h.0 h.1 (root)");
}
TEST(Policy, SizeCountsWhatRemains) { EXPECT_EQ(choose("size:10"), "h.0.fc h.0 h.1.fc h.1 head (root)"); }
TEST(Policy, SizeLooksInNoForceLeaf) { EXPECT_EQ(choose("size:20,force-leaf=Block"), "head (root)"); }
TEST(Policy, ForceLeafHidesTheModuleToo) {
  ModuleTree tree = makeTree({{"", "Net", 0, {"a"}},
                              {"a", "torch.nn.modules.activation.MultiheadAttention", 50, {"a.out"}},
                              {"a.out", "Linear", 50}});
  EXPECT_EQ(names(tree, makeRequest("or(size:50;none;name:a)")), "a.out a (root)");
  EXPECT_EQ(names(tree, makeRequest("size:50,force-leaf=")), "a.out a (root)");
  Request request = makeRequest("size:50");
  request.strictNames = false;
  EXPECT_EQ(names(tree, request), "(root)");
}

TEST(Policy, CallableIsAskedGoingDownAndGoingUp) {
  Request request;
  request.policy.kind = Policy::Kind::callable;
  ModuleTree tree = makeBlocks();
  std::string calls;
  Decide decide = [&](int32_t, size_t module, bool recurse, int64_t numel, std::string &) {
    const std::string &path = tree.getModule(module).path;
    calls += formatPath(path) + (recurse ? "?" : "!") + std::to_string(numel) + " ";
    return recurse ? path != "h.1" : path == "h.0.fc";
  };
  EXPECT_EQ(names(tree, request, decide), "h.0.fc (root)");
  EXPECT_EQ(calls, "(root)?105 h?60 h.0?30 h.0.fc?20 h.0.fc!20 h.0!10 h.1?30 h!40 head?40 head!40 ");
}

TEST(Policy, CustomIsAskedOncePerModule) {
  Request request;
  request.policy.kind = Policy::Kind::custom;
  ModuleTree tree = makeBlocks();
  std::string calls;
  Decide decide = [&](int32_t, size_t module, bool, int64_t, std::string &options) {
    const std::string &path = tree.getModule(module).path;
    calls += formatPath(path) + " ";
    if (path == "head")
      options = R"({"mode": "replicate"})";
    return path == "head";
  };
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request, decide);
  EXPECT_EQ(calls, "(root) h h.0 h.0.fc h.1 h.1.fc head ");
  ASSERT_EQ(units->units.size(), 2u);
  EXPECT_EQ(units->units[0].options.mode, Mode::replicate);
  EXPECT_EQ(units->units[1].options.mode, Mode::fullyShard);
}

TEST(Policy, SharedModulesAreVisitedOnce) {
  ModuleTree tree = makeTree(
      {{"", "Net", 0, {"a", "b"}}, {"a", "List", 0, {"a.x"}}, {"a.x", "Linear", 8}, {"b", "List", 4, {"a.x"}}});
  EXPECT_EQ(names(tree, makeRequest("always")), "a.x a b (root)");
  // b holds 12 elements; 4 remain after a.x.
  EXPECT_EQ(names(tree, makeRequest("size:8")), "a.x (root)");
  EXPECT_EQ(names(tree, makeRequest("size:4")), "a.x b (root)");
  Request request;
  request.policy.kind = Policy::Kind::callable;
  std::string calls;
  names(tree, request, [&](int32_t, size_t module, bool recurse, int64_t, std::string &) {
    calls += formatPath(tree.getModule(module).path) + (recurse ? "? " : "! ");
    return 1;
  });
  EXPECT_EQ(calls, "(root)? a? a.x? a.x! a! b? b! ");
}

TEST(Policy, WithoutParametersIsAUnit) {
  ModuleTree tree = makeTree({{"", "Net", 3, {"act"}}, {"act", "ReLU", 0}});
  EXPECT_EQ(describe(tree, makeRequest("class:ReLU")), "act:; : w");
}

TEST(Policy, IgnoredModulesAreNotAsked) {
  Request request = makeRequest("always");
  request.ignoredModules = {"h.0"};
  EXPECT_EQ(names(makeBlocks(), request), "h.1.fc h.1 h head (root)");
}
TEST(Policy, IgnoredParametersDoNotCount) {
  Request request = makeRequest("size:20");
  request.ignoredParameters = {"h.0.fc.w"};
  EXPECT_EQ(names(makeBlocks(), request), "h.1.fc head (root)");
}

TEST(Policy, NothingChosenIsAnErrorOrAWarning) {
  EXPECT_EQ(choose("size:41"),
            "policy 'size:41' chooses no module: the whole model is one unit; the largest module, 'h', "
            "has 60 elements");
  Request request = makeRequest("size:41");
  request.strictNames = false;
  EXPECT_EQ(names(makeBlocks(), request), "(root)");
}

TEST(Policy, ExemptClassesAreUnitsWithoutPrecision) {
  Request request = makeRequest("class:Block");
  request.exemptClasses = {"Linear"};
  EXPECT_EQ(names(makeBlocks(), request), "h.0 h.1 (root)");
  request.defaults.precision = Precision{runtime::DType::BF16, {}, {}, {}, {}, {}};
  EXPECT_EQ(names(makeBlocks(), request), "h.0.fc h.0 h.1.fc h.1 head (root)");
  runtime::Expected<ShardUnits> units = assignShardUnits(makeBlocks(), request);
  EXPECT_TRUE(units->units[0].options.precision->empty());
  EXPECT_FALSE(units->units[1].options.precision->empty());
}

TEST(Policy, Annotations) {
  Request request;
  request.annotations = {{{"h.0"}, {}, {}}, {{"h.1", "head"}, {}, {}}};
  EXPECT_EQ(describe(makeBlocks(), request), "h.0: h.0.w h.0.fc.w; h.1: h.1.w h.1.fc.w head.w; : w");
  runtime::Expected<ShardUnits> units = assignShardUnits(makeBlocks(), request);
  EXPECT_EQ(units->units[0].options.reshardAfterForward, UnitOptions::kReshard);
  EXPECT_EQ(units->units[2].options.reshardAfterForward, UnitOptions::kKeep);
  request.annotations.push_back({{"h.0"}, {}, {}});
  EXPECT_EQ(names(makeBlocks(), request), "module 'h.0' is annotated twice");
  request.policy = *parsePolicy("always");
  EXPECT_EQ(names(makeBlocks(), request),
            "module 'h.0' is annotated as a unit already; a policy chooses for models without annotations");
}
