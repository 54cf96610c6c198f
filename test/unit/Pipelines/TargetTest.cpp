//===- TargetTest.cpp - the value of --target -----------------------------===//

#include "spmd/Pipelines/Target.h"
#include <gtest/gtest.h>

using namespace spmd;

namespace {

std::string parse(const std::string &text) {
  std::string error;
  std::shared_ptr<const Target> target = parseTarget(text, error);
  return target ? target->getName().str() : "error: " + error;
}

TEST(TargetTest, Parses) {
  EXPECT_EQ(parse("host"), "host");
  EXPECT_EQ(parse("cuda:sm_90"), "cuda");
  EXPECT_EQ(parse("cuda:sm_100,sm_80,sm_100"), "cuda");
  EXPECT_EQ(parse("emulate:sm_80"), "emulate");
}

TEST(TargetTest, Errors) {
  const std::string known = "; chips are sm_80, sm_90, sm_100";
  EXPECT_EQ(parse(""), "error: expected host, cuda:CHIP[,CHIP...] or emulate:CHIP" + known);
  EXPECT_EQ(parse("host:sm_90"), "error: expected host, cuda:CHIP[,CHIP...] or emulate:CHIP" + known);
  EXPECT_EQ(parse("cuda"), "error: expected cuda:CHIP" + known);
  EXPECT_EQ(parse("cuda:sm_90,"), "error: expected cuda:CHIP" + known);
  EXPECT_EQ(parse("cuda:90"), "error: unknown chip '90'" + known);
  EXPECT_EQ(parse("emulate:sm_80,sm_90"), "error: expected one chip to emulate, found 2" + known);
}

} // namespace
