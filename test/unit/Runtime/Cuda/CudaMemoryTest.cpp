//===- CudaMemoryTest.cpp - Arenas on the stand-in of CUDA ----------------===//

#include "lib/Runtime/Cuda/CudaMemory.h"
#include "lib/Runtime/Cuda/StepRing.h"

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

TEST_F(CudaArenas, WhatAStepGaveIsThereWhileLaterOnesRun) {
  const OutputBlock block{4096, 64};
  StepRing ring;
  ASSERT_TRUE(ring.make(memory->gpuOf(1), block, reinterpret_cast<Address>(memory->addressOf(1, block.offset))).ok());
  const uint64_t steps = StepRing::kSteps + 3;
  for (uint64_t step = 0; step < steps; ++step) {
    ASSERT_TRUE(memory->fill(1, block.offset, static_cast<uint8_t>(step + 1), block.bytes).ok());
    if (step >= StepRing::kSteps)
      ASSERT_EQ(memory->gpuOf(1)->driver().cuEventSynchronize(ring.ended(step)), kSuccess);
    ASSERT_TRUE(ring.end(step).ok());
  }
  for (uint64_t step = steps - StepRing::kSteps; step < steps; ++step) {
    ASSERT_EQ(memory->gpuOf(1)->driver().cuEventSynchronize(ring.ended(step)), kSuccess);
    EXPECT_EQ(ring.query(step), kSuccess);
    EXPECT_EQ(ring.outputs(step)[63], static_cast<char>(step + 1));
  }
}

/// Of what lies in the copy, the copy is read; of what was written since, the arena.
TEST_F(CudaArenas, OutputsAreReadFromTheirCopy) {
  const OutputBlock block{4096, 64};
  StepRing ring;
  ASSERT_TRUE(ring.make(memory->gpuOf(0), block, reinterpret_cast<Address>(memory->addressOf(0, block.offset))).ok());
  ASSERT_TRUE(memory->fill(0, block.offset - 1, 7, block.bytes + 1).ok());
  ASSERT_TRUE(ring.end(0).ok());
  memory->setOutputs(0, block, ring.outputs(0), ring.ended(0));
  const Gpu &gpu = *memory->gpuOf(0);
  auto overwrite = [&](uint8_t value) { // behind the memory's back, as the next step does
    ASSERT_TRUE(gpu.use().ok());
    ASSERT_EQ(gpu.driver().cuMemsetD8Async(reinterpret_cast<Address>(memory->addressOf(0, block.offset - 1)), value,
                                           static_cast<size_t>(block.bytes + 1), gpu.mainStream()),
              kSuccess);
  };
  overwrite(9);
  EXPECT_EQ(read(0, block.offset + 60, 4), std::vector<char>(4, 7));
  EXPECT_EQ(read(0, block.offset - 1, 1)[0], 9);
  EXPECT_EQ(read(1, block.offset, 1)[0], 0) << "of another rank";
  char value = 11;
  ASSERT_TRUE(memory->copyIn(0, block.offset + 8, &value, 1).ok());
  EXPECT_EQ(read(0, block.offset + 8, 1)[0], 11);
  EXPECT_EQ(read(0, block.offset, 1)[0], 9);
  memory->setOutputs(0, OutputBlock(), nullptr, nullptr);
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
