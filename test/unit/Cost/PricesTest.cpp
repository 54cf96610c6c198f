//===- PricesTest.cpp -----------------------------------------------------===//

#include "spmd/Cost/Prices.h"
#include "spmd/Cost/MachineFile.h"

#include <gtest/gtest.h>

using namespace spmd::cost;
using spmd::runtime::CollectiveKind;
using spmd::runtime::DType;
using spmd::runtime::RankGroups;

static Machine reference() {
  auto machine = loadMachine(MACHINES, "reference-h100");
  EXPECT_TRUE(machine);
  return *machine;
}

/// A list of one command of this kind.
static CommandList one(CommandKind kind) {
  CommandList list;
  list.streams = {"compute"};
  list.add(kind, 0);
  return list;
}

static double secondsOf(const CommandList &list, const Machine &machine) {
  auto prices = priceCommands(list, machine);
  EXPECT_TRUE(prices);
  return prices->alone(0);
}

static CommandList gemm(int64_t m, int64_t n, int64_t k, DType dtype) {
  CommandList list = one(CommandKind::Gemm);
  list.flops[0] = 2 * m * n * k;
  list.bytes[0] = (m * k + k * n + m * n) * spmd::runtime::sizeOf(dtype);
  list.side[0] = std::min(m, n);
  list.dtype[0] = dtype;
  return list;
}

TEST(PricesTest, Products) {
  Machine machine = reference();
  EXPECT_DOUBLE_EQ(secondsOf(gemm(8192, 4096, 4096, DType::BF16), machine),
                   1.5e-6 + 2.0 * 8192 * 4096 * 4096 / (989e12 * 0.72));
  EXPECT_DOUBLE_EQ(secondsOf(gemm(8192, 1024, 4096, DType::BF16), machine),
                   1.5e-6 + 2.0 * 8192 * 1024 * 4096 / (989e12 * 0.62));
  EXPECT_DOUBLE_EQ(secondsOf(gemm(8192, 4096, 4096, DType::F32), machine),
                   1.5e-6 + 2.0 * 8192 * 4096 * 4096 / (494.5e12 * 0.72));
  // A product with a vector is bound by memory.
  CommandList thin = gemm(8192, 1, 8192, DType::BF16);
  EXPECT_DOUBLE_EQ(secondsOf(thin, machine), 1.5e-6 + static_cast<double>(thin.bytes[0]) / (3.35e12 * 0.9));
  CommandList attention = one(CommandKind::AttentionBackward);
  attention.flops[0] = 500'000'000'000;
  attention.dtype[0] = DType::BF16;
  EXPECT_DOUBLE_EQ(secondsOf(attention, machine), 1.5e-6 + 1e-3);
}

TEST(PricesTest, Collectives) {
  Machine machine = reference();
  CommandList list = one(CommandKind::Collective);
  list.bytes[0] = 8'000'000'000;
  list.communicator[0] = 0;
  list.groups = {RankGroups::all(8)};
  EXPECT_DOUBLE_EQ(secondsOf(list, machine), 25e-6 + 7e9 / 350e9);
  list.collective[0] = CollectiveKind::AllReduce;
  EXPECT_DOUBLE_EQ(secondsOf(list, machine), 25e-6 + 14e9 / 350e9);
  list.groups = {RankGroups::all(64)};
  list.collective[0] = CollectiveKind::ReduceScatter;
  EXPECT_DOUBLE_EQ(secondsOf(list, machine), 150e-6 + 8e9 * 63 / 64 / 345e9);
  list.groups = {RankGroups::all(1)};
  EXPECT_EQ(secondsOf(list, machine), 0);
  list.groups = {RankGroups::all(8192)};
  auto prices = priceCommands(list, machine);
  ASSERT_FALSE(prices);
  EXPECT_NE(prices.error().message.find("hint: choose another --network"), std::string::npos);
}

TEST(PricesTest, HostCopies) {
  CommandList list = one(CommandKind::ToHost);
  list.bytes[0] = 55'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(list, reference()), 1e-5 + 1e-3);
  auto prices = priceCommands(list, reference());
  EXPECT_EQ(prices->resource[0], Resource::ToHost);
}

TEST(PricesTest, FasterConstantsNeverPriceHigher) {
  Machine slow = reference(), fast = slow;
  fast.matrixPeaks = {2 * slow.matrixPeaks.bf16, slow.matrixPeaks.f16, slow.matrixPeaks.f32, slow.matrixPeaks.f64};
  fast.memoryPeak *= 2;
  fast.launch /= 2;
  for (int64_t n : {1, 64, 1024, 4096})
    EXPECT_LT(secondsOf(gemm(4096, n, 4096, DType::BF16), fast), secondsOf(gemm(4096, n, 4096, DType::BF16), slow));
}
