//===- PolicyTextTest.cpp - policies as text, and where they are wrong ----===//

#include "TestTree.h"

using namespace spmd;
using namespace spmd::units;

static std::string getError(const std::string &text) {
  runtime::Expected<Policy> policy = parsePolicy(text);
  return policy ? "" : policy.error().message;
}

TEST(PolicyText, Forms) {
  EXPECT_EQ(parsePolicy("auto")->kind, Policy::Kind::automatic);
  EXPECT_EQ(parsePolicy(" none ")->kind, Policy::Kind::none);
  EXPECT_EQ(parsePolicy("class:A, b.B")->names, (std::vector<std::string>{"A", "b.B"}));
  EXPECT_EQ(parsePolicy("name:a(b;c)|d")->names, (std::vector<std::string>{"a(b;c)|d"}));
  Policy size = *parsePolicy("size:7,exclude=A+B,force-leaf=");
  EXPECT_EQ(size.size, 7);
  EXPECT_EQ(*size.exclude, (std::vector<std::string>{"A", "B"}));
  EXPECT_TRUE(size.forceLeaf->empty());
  EXPECT_FALSE(parsePolicy("size:7")->exclude);
}

TEST(PolicyText, OrNests) {
  Policy policy = *parsePolicy("or(or(always;class:A);name:(a;b);size:2)");
  ASSERT_EQ(policy.parts.size(), 3u);
  EXPECT_EQ(policy.parts[0].parts[1].names, (std::vector<std::string>{"A"}));
  EXPECT_EQ(policy.parts[1].names, (std::vector<std::string>{"(a;b)"}));
}

TEST(PolicyText, ErrorsHaveThePosition) {
  EXPECT_EQ(getError("class:A,,B"), "policy 'class:A,,B': position 9: expected a class name");
  EXPECT_EQ(getError("class:A-B"), "policy 'class:A-B': position 8: expected a class name, found '-'");
  EXPECT_EQ(getError("size:0"), "policy 'size:0': position 6: expected at least 1 element");
  EXPECT_EQ(getError("size:-1"), "policy 'size:-1': position 6: expected a number of elements, such as size:100000000");
  EXPECT_EQ(getError("size:1,exclude=A,exclude=B"), "policy 'size:1,exclude=A,exclude=B': position 18: given twice");
  EXPECT_EQ(getError("name:"), "policy 'name:': position 6: expected a regular expression for module paths");
  EXPECT_EQ(getError("or(always;class:)"), "policy 'or(always;class:)': position 17: expected a class name");
  EXPECT_EQ(getError("or(auto)"), "policy 'or(auto)': position 4: auto is no part of another policy");
  EXPECT_EQ(getError(""), "policy '': position 1: expected annotations, auto, none, always, class:A,B, "
                          "size:N[,force-leaf=A+B][,exclude=A+B], name:REGEX or or(P;P)");
}

TEST(PolicyText, Suggestions) {
  EXPECT_EQ(suggestNames("Blok", {"Linear", "Block", "Net"}), " (closest: Block, Net, Linear)");
  EXPECT_EQ(suggestNames("Blok", {}), "");
}
