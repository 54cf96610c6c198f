#include "spmd/Runtime/Core/Hash.h"
#include "TestSupport.h"

using namespace spmd::runtime;

TEST(Hash, PublishedTestVectors) {
  EXPECT_EQ(formatHash(hashBytes("")), "cbf29ce484222325");
  EXPECT_EQ(formatHash(hashBytes("foobar")), "85944171f73967e8");
}

TEST(Hash, ChangedContent) {
  EXPECT_TRUE(checkHash("f", "foobar", "85944171f73967e8").ok());
  EXPECT_TRUE(checkHash("f", "foobar", "").ok()); // nothing stated
  Status status = checkHash("f", "foobaz", "85944171f73967e8");
  EXPECT_NE(status.message.find("'f': its content has the hash "), std::string::npos);
  EXPECT_NE(status.message.find("the manifest says 85944171f73967e8"), std::string::npos);
}
