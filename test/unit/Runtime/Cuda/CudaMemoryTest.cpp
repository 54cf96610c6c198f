//===- CudaMemoryTest.cpp - Arenas on the stand-in of CUDA ----------------===//

#include "lib/Runtime/Cuda/CudaMemory.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

using namespace spmd::runtime;
using namespace spmd::runtime::cuda;

namespace {

class CudaArenas : public ::testing::Test {
protected:
  void SetUp() override {
    ::setenv("SPMD_CUDA_LIBRARIES", SPMD_STANDIN_DIR, 1);
    Expected<std::shared_ptr<const Driver>> driver = Driver::load();
    ASSERT_TRUE(driver) << driver.error().message;
    std::vector<std::shared_ptr<const Gpu>> gpus;
    for (int ordinal : {0, 1}) {
      Expected<std::shared_ptr<Gpu>> gpu = Gpu::open(*driver, ordinal);
      ASSERT_TRUE(gpu) << gpu.error().message;
      gpus.push_back(*gpu);
    }
    Expected<std::unique_ptr<CudaMemory>> made = CudaMemory::allocate(RanksHere::all(2), gpus, kBytes);
    ASSERT_TRUE(made) << made.error().message;
    memory = std::move(*made);
  }

  std::vector<char> read(int64_t rank, int64_t offset, int64_t bytes) {
    std::vector<char> found(static_cast<size_t>(bytes));
    EXPECT_TRUE(memory->copyOut(rank, offset, found.data(), bytes).ok());
    return found;
  }

  static constexpr int64_t kBytes = 40 << 20;
  std::unique_ptr<CudaMemory> memory;
};

/// More than the ring of pinned blocks holds: they are filled again only when copies have left them.
TEST_F(CudaArenas, AFloodOfCopiesArrives) {
  std::vector<char> bytes(kBytes);
  uint32_t bits = 1;
  for (char &byte : bytes)
    byte = static_cast<char>((bits = bits * 1664525 + 1013904223) >> 24);
  for (int64_t at = 0; at < kBytes; at += 1 << 20)
    for (int64_t rank : {0, 1})
      ASSERT_TRUE(memory->copyIn(rank, at, bytes.data() + (rank ? kBytes - at - (1 << 20) : at), 1 << 20).ok());
  EXPECT_TRUE(read(0, 0, kBytes) == bytes);
  for (int64_t at = 0; at < kBytes; at += 1 << 20) {
    auto begin = bytes.begin() + (kBytes - at - (1 << 20));
    ASSERT_TRUE(read(1, at, 1 << 20) == std::vector<char>(begin, begin + (1 << 20))) << at;
  }
}

TEST_F(CudaArenas, LaterCopiesAndFillsWin) {
  std::vector<char> bytes(100);
  std::iota(bytes.begin(), bytes.end(), 1);
  ASSERT_TRUE(memory->copyIn(0, 7, bytes.data(), 100).ok());
  ASSERT_TRUE(memory->fill(0, 50, 0xee, 10).ok());
  ASSERT_TRUE(memory->copyIn(0, 55, bytes.data(), 3).ok());
  std::vector<char> found = read(0, 0, 120);
  EXPECT_EQ(found[6], 0);
  EXPECT_EQ(found[7], 1);
  EXPECT_EQ(found[50], static_cast<char>(0xee));
  EXPECT_EQ(found[56], 2);
  EXPECT_EQ(found[59], static_cast<char>(0xee));
  EXPECT_EQ(found[60], bytes[53]);
  EXPECT_EQ(found[107], 0);
}

TEST_F(CudaArenas, GrowingKeepsTheStateAndBeginsAtZero) {
  char value = 42;
  ASSERT_TRUE(memory->copyIn(1, 1000, &value, 1).ok());
  ASSERT_TRUE(memory->copyIn(1, 5000, &value, 1).ok());
  ASSERT_TRUE(memory->grow(2 * kBytes, 4096).ok());
  EXPECT_EQ(memory->generation(), 1);
  EXPECT_EQ(read(1, 1000, 1)[0], 42);
  EXPECT_EQ(read(1, 5000, 1)[0], 0);
  EXPECT_EQ(read(1, 2 * kBytes - 1, 1)[0], 0);
}

} // namespace
