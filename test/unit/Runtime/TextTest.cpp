#include "spmd/Runtime/Core/Text.h"
#include "TestSupport.h"
#include "spmd/Runtime/Train/Executor.h"

using namespace spmd::runtime;

TEST(Text, Counts) {
  EXPECT_EQ(formatCount(0), "0");
  EXPECT_EQ(formatCount(999), "999");
  EXPECT_EQ(formatCount(1000), "1,000");
  EXPECT_EQ(formatCount(-1234567), "-1,234,567");
}

TEST(Text, Tables) {
  EXPECT_EQ(formatTable({{"name", "bytes"}, {"é", "12"}}), "  name  bytes\n"
                                                           "  é        12\n");
}

TEST(Faults, AreParsed) {
  Expected<Fault> fault = parseFault("skip:2:17");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Fault::Kind::Skip);
  EXPECT_EQ(fault->rank, 2);
  EXPECT_EQ(fault->command, 17);
  for (const char *bad : {"", "skip", "skip:1", "skip:1:2:3", "skip:-1:2", "hop:1:2", "skip:1:2x"})
    EXPECT_FALSE(parseFault(bad)) << bad;
}
