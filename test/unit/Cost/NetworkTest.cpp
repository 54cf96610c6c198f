//===- NetworkTest.cpp ----------------------------------------------------===//

#include "spmd/Cost/Network.h"

#include <gtest/gtest.h>

using namespace spmd::cost;
using spmd::runtime::RankGroups;

/// Nodes of 4 ranks.
static Network makeNetwork() {
  Network network;
  network.name = "test";
  network.ranksPerNode = 4;
  network.node = {1, 100};
  network.fabric = {{2, {10, 80}, {4, 20}}, {4, {30, 60}, {8, 10}}};
  return network;
}

TEST(NetworkTest, SpansOfGroups) {
  GroupSpan all = spanOf(RankGroups::all(16), 4);
  EXPECT_EQ(all.ranks, 16);
  EXPECT_EQ(all.nodes, 4);
  std::vector<spmd::runtime::MeshAxis> mesh = {{"replicate", 4}, {"shard", 4}};
  EXPECT_EQ(spanOf(RankGroups::along(mesh, {"shard"}), 4).nodes, 1);
  GroupSpan across = spanOf(RankGroups::along(mesh, {"replicate"}), 4);
  EXPECT_EQ(across.ranks, 4);
  EXPECT_EQ(across.nodes, 4);
  // Groups of 3 on nodes of 4: the first lies on one node, the second on two.
  std::vector<spmd::runtime::MeshAxis> uneven = {{"replicate", 4}, {"shard", 3}};
  EXPECT_EQ(spanOf(RankGroups::along(uneven, {"shard"}), 4).nodes, 2);
}

TEST(NetworkTest, GroupsInsideANodeUseTheNode) {
  auto path = makeNetwork().findPath({4, 1});
  ASSERT_TRUE(path);
  EXPECT_EQ(path->latency, 1);
  EXPECT_EQ(path->bandwidth, 100);
}

TEST(NetworkTest, RowsAreInterpolated) {
  auto whole = makeNetwork().findPath({12, 3});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->latency, 20);
  EXPECT_EQ(whole->bandwidth, 70);
  auto single = makeNetwork().findPath({3, 3});
  ASSERT_TRUE(single);
  EXPECT_EQ(single->latency, 6);
  EXPECT_EQ(single->bandwidth, 15);
  // 2 of 4 ranks of a node are a third of the way from one to all.
  auto some = makeNetwork().findPath({8, 4});
  ASSERT_TRUE(some);
  EXPECT_DOUBLE_EQ(some->bandwidth, 10 + (60 - 10) / 3.0);
}

TEST(NetworkTest, MoreNodesThanTheTableAreAnError) {
  auto path = makeNetwork().findPath({20, 5});
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().message,
            "network 'test': expected groups of at most 4 nodes of 4 ranks, found a communicator of "
            "20 ranks on 5 nodes\n  hint: choose another --network, or add a row to its fabric");
}
