//===- SchemaTest.cpp - arguments of PyTorch schemas ----------------------===//

#include "dialects/Aten/Schema.h"

#include "gtest/gtest.h"

using namespace spmd::aten;

TEST(Schema, ArgumentsAreThoseInParentheses) {
  auto args = parseSchemaArgs("aten::f(Tensor(a -> *) self, Tensor? weight=None, int[2] size=[1, 1], *, Tensor[] list, "
                              "Scalar alpha=1) -> (Tensor, Tensor)");
  ASSERT_EQ(args.size(), 5u);
  EXPECT_EQ(args[0].type, "Tensor(a -> *)");
  EXPECT_EQ(args[0].name, "self");
  EXPECT_TRUE(args[0].isTensor());
  EXPECT_FALSE(args[0].isList());
  EXPECT_TRUE(args[1].isTensor() && args[1].isOptional());
  EXPECT_EQ(args[2].name, "size");
  EXPECT_TRUE(args[2].isList() && !args[2].isTensor());
  EXPECT_TRUE(args[3].isTensor() && args[3].isList());
  EXPECT_EQ(args[4].name, "alpha");
  EXPECT_EQ(args[4].type, "Scalar");
  EXPECT_TRUE(parseSchemaArgs("aten::f() -> Tensor").empty());
}

TEST(Schema, ViewsShareMemoryWithAnArgument) {
  EXPECT_TRUE(returnsView("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"));
  EXPECT_TRUE(returnsView("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"));
  EXPECT_FALSE(returnsView("aten::clone(Tensor self) -> Tensor"));
}
