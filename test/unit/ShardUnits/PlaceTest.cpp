//===- PlaceTest.cpp - which unit a parameter belongs to, and where -------===//

#include "TestTree.h"

using namespace spmd;
using namespace spmd::units;

/// Two blocks in a list and a head; `t` is owned by the modules of `owners`.
static ModuleTree makeTied(const std::vector<std::string> &owners) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string &owner : owners)
    pairs.emplace_back(owner, "t");
  return makeTree({{"", "Net", 0, {"h", "head"}},
                   {"h", "List", 0, {"h.0", "h.1"}},
                   {"h.0", "Block", 3},
                   {"h.1", "Block", 3},
                   {"head", "Linear", 3}},
                  {{"t", {}, {5}}}, pairs);
}

TEST(Place, InnermostUnitAroundTheOwner) {
  EXPECT_EQ(describe(makeBlocks(), makeRequest("class:Block")), "h.0: h.0.w h.0.fc.w; h.1: h.1.w h.1.fc.w; : w head.w");
}
TEST(Place, TiedAtTheNearestCommonAncestor) {
  EXPECT_EQ(describe(makeTied({"h.0", "h.1"}), makeRequest("always")), "h.0: h.0.w; h.1: h.1.w; h: t; head: head.w; :");
  EXPECT_EQ(describe(makeTied({"h.0", "head"}), makeRequest("always")),
            "h.0: h.0.w; h.1: h.1.w; h:; head: head.w; : t");
}
TEST(Place, TiedWithinOneUnitStays) {
  Request request;
  request.annotations = {{{"h.0", "head"}, {}, {}}};
  EXPECT_EQ(describe(makeTied({"h.0", "head"}), request), "h.0: t h.0.w head.w; : h.1.w");
}
TEST(Place, TiedIsARemarkOrAnError) {
  Request request = makeRequest("always");
  runtime::Expected<ShardUnits> units = assignShardUnits(makeTied({"h.0", "h.1"}), request);
  EXPECT_EQ(
      units->remarks,
      std::vector<std::string>{"parameter 't' is shared by the modules 'h.0', 'h.1': it belongs to the unit 'h' around "
                               "their nearest common ancestor"});
  request.strictTied = true;
  EXPECT_EQ(describe(makeTied({"h.0", "h.1"}), request),
            "parameter 't' is shared by the modules 'h.0', 'h.1', which are in different units; it would belong to the "
            "unit 'h' around their nearest common ancestor, and strict-tied forbids that");
}
TEST(Place, SharedModuleAtTheCommonAncestorOfItsParents) {
  ModuleTree tree = makeTree({{"", "Net", 0, {"l"}},
                              {"l", "List", 0, {"l.a", "l.b"}},
                              {"l.a", "Block", 1, {"l.a.x"}},
                              {"l.a.x", "Linear", 8},
                              {"l.b", "Block", 1, {"l.a.x"}}});
  EXPECT_EQ(describe(tree, makeRequest("class:Block,List")), "l.a: l.a.w; l.b: l.b.w; l: l.a.x.w; :");
  EXPECT_EQ(describe(tree, makeRequest("class:Block,Linear")), "l.a.x: l.a.x.w; l.a: l.a.w; l.b: l.b.w; :");
}
TEST(Place, IgnoredIsInNoUnit) {
  Request request = makeRequest("class:Block");
  request.ignoredModules = {"h.0"};
  request.ignoredParameters = {"w"};
  ModuleTree tree = makeBlocks();
  EXPECT_EQ(describe(tree, request), "h.1: h.1.w h.1.fc.w; : head.w");
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request);
  EXPECT_EQ(units->ignored.buffers[0].parameters, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(units->ignored.options.mode, Mode::replicate);
  request.ignoredParameters = {"v"};
  EXPECT_EQ(describe(tree, request), "ignored parameter 'v' is not in the model (closest: w, h.0.w, h.1.w)");
}
TEST(Place, BuffersByDtypeAndUpdate) {
  ParameterRecord frozen{"frozen", {}, {200}, runtime::DType::F32, false};
  frozen.updated = false;
  ModuleTree tree = makeTree({{"", "Net", 100}}, {{"half", {}, {3}, runtime::DType::BF16}, frozen, {"more", {}, {130}}},
                             {{"", "half"}, {"", "frozen"}, {"", "more"}});
  Request request = makeRequest("none");
  request.mesh = Mesh::of(2);
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request);
  const std::vector<UnitBuffer> &buffers = units->units[0].buffers;
  ASSERT_EQ(buffers.size(), 3u);
  EXPECT_EQ(buffers[0].padded, 256);
  EXPECT_FALSE(buffers[1].updated);
  // more (130) is aligned to 256, then w (100); padded to 2 × 128.
  EXPECT_EQ(buffers[2].offsets, (std::vector<int64_t>{0, 256}));
  EXPECT_EQ(buffers[2].padded, 512);
  EXPECT_EQ(units->warnings.size(), 1u);
}
TEST(Place, SortedByOptimizerGroup) {
  ParameterRecord second{"second", {}, {4}};
  second.group = 1;
  ParameterRecord first{"first", {}, {4}};
  first.group = 0;
  ModuleTree tree = makeTree({{"", "Net"}}, {second, first}, {{"", "second"}, {"", "first"}});
  EXPECT_EQ(describe(tree, makeRequest("none")), ": first second");
}
TEST(Place, BrokenTrees) {
  auto error = [](std::vector<ModuleRecord> modules) { return ModuleTree::create(modules, {}).error().message; };
  EXPECT_EQ(error({}), "the module tree has no modules");
  EXPECT_EQ(error({{"", "A", {}, {}, {"b"}}}), "module '' has a child 'b' that is not in the tree");
  EXPECT_EQ(error({{"", "A", {}, {}, {}}, {"b", "B", {}, {}, {}}}), "module 'b' is a child of no module");
  EXPECT_EQ(error({{"", "A", {}, {}, {}}, {"", "B", {}, {}, {}}}), "module '' is in the module tree twice");
  // A module inside itself is visited once.
  EXPECT_TRUE(ModuleTree::create({{"", "A", {}, {}, {"b"}}, {"b", "B", {}, {}, {""}}}, {}));
}
