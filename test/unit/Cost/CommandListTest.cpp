//===- CommandListTest.cpp ------------------------------------------------===//

#include "spmd/Cost/CommandList.h"

#include <gtest/gtest.h>

using namespace spmd::cost;
using namespace spmd::runtime;

static AttentionShape attention(int64_t queries, int64_t keys, std::optional<int64_t> low,
                                std::optional<int64_t> high) {
  AttentionShape shape;
  shape.batch = 1;
  shape.heads = shape.kvHeads = 2;
  shape.qLen = queries;
  shape.kvLen = keys;
  shape.headDim = shape.vDim = 8;
  shape.windowLow = low;
  shape.windowHigh = high;
  return shape;
}

TEST(CommandListTest, PairsOfAWindow) {
  EXPECT_EQ(countPairs(attention(4, 6, {}, {})), 24);
  EXPECT_EQ(countPairs(attention(4, 4, {}, 0)), 10);
  EXPECT_EQ(countPairs(attention(4, 4, -1, 0)), 7);
  EXPECT_EQ(countPairs(attention(4, 4, 3, 5)), 1);
}

static Plan makePlan() {
  Plan plan;
  plan.streams = {"compute", "gather"};
  plan.communicators = {"gather"};
  plan.buffers.resize(3);
  plan.commands.resize(5);
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    plan.buffers[i].id = static_cast<int32_t>(i);
  CollectiveCommand gather;
  gather.kind = CollectiveKind::AllGather;
  gather.unit = "unit0";
  gather.communicator = 0;
  plan.commands[0] = {1, "", {{0, 0, {}, 100, Access::Read}, {1, 0, {}, 400, Access::Write}}, gather};
  plan.commands[1] = {0, "", {}, WaitCommand{0}};
  GemmCommand gemm;
  gemm.shape.m = 5, gemm.shape.n = 7, gemm.shape.k = 11;
  gemm.shape.workspace = 3;
  gemm.dtype = DType::BF16;
  plan.commands[2] = {0,
                      "",
                      {{0, 0, {}, 110, Access::Read},
                       {0, 0, {}, 110, Access::Read}, // the same bytes again
                       {1, 0, {}, 70, Access::Write},
                       {2, 0, {}, 1000, Access::Write}},
                      gemm};
  plan.commands[3] = {0, "", {{0, 0, {}, 1000, Access::Read}, {1, 0, {}, 10, Access::Write}}, KernelCommand{"lookup"}};
  plan.commands[4] = {0, "", {{0, 0, {}, 1000, Access::Read}, {1, 0, {}, 10, Access::Write}}, KernelCommand{"experts"}};
  return plan;
}

TEST(CommandListTest, WhatCommandsDo) {
  Manifest manifest;
  manifest.ranks = 4;
  manifest.mesh = {{"data", 4}};
  manifest.units.resize(1);
  manifest.units[0].name = "unit0";
  manifest.kernelTable = {{"lookup", "gather_rows", 24, std::nullopt}, {"experts", "grouped_gemm", 1010, std::nullopt}};
  manifest.kernelTable[1].products = KernelProducts{5000, DType::F16};
  CommandList list = makeCommandList(manifest, makePlan());
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list.kind, (std::vector<CommandKind>{CommandKind::Collective, CommandKind::Wait, CommandKind::Gemm,
                                                 CommandKind::Kernel, CommandKind::GroupedGemm}));
  EXPECT_EQ(list.stream, (std::vector<int32_t>{1, 0, 0, 0, 0}));
  EXPECT_EQ(list.awaited, (std::vector<int32_t>{-1, 0, -1, -1, -1}));
  EXPECT_EQ(list.bytes, (std::vector<int64_t>{400, 0, 180, 24, 1010}));
  EXPECT_EQ(list.flops, (std::vector<int64_t>{0, 0, 2 * 5 * 7 * 11, 0, 5000}));
  EXPECT_EQ(list.side[2], 5);
  EXPECT_EQ(list.dtype[4], DType::F16);
  EXPECT_EQ(list.unit[0], 0);
  EXPECT_EQ(list.groups[0].size(), 4);
}
