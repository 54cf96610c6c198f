//===- DeviceTest.cpp - GPUs and how many blocks run on them --------------===//

#include "lib/Kernels/Gpu/Device.h"
#include <gtest/gtest.h>

using namespace spmd::kernel;

namespace {

TEST(DeviceTest, FindsByChip) {
  ASSERT_NE(findDevice("sm_90"), nullptr);
  EXPECT_EQ(findDevice("sm_90")->sms, 132);
  EXPECT_EQ(findDevice("sm_90")->sharedBytesPerBlock, 232448);
  EXPECT_EQ(findDevice("sm_9"), nullptr);
  EXPECT_EQ(findDevice(""), nullptr);
}

TEST(DeviceTest, NewerChipsAreNotSmaller) {
  const Device *previous = nullptr;
  for (const Device &device : getDevices()) {
    EXPECT_EQ(device.getWarpsPerSM(), 64);
    if (previous) {
      EXPECT_GE(device.sms, previous->sms);
      EXPECT_GE(device.sharedBytesPerSM, previous->sharedBytesPerSM);
      EXPECT_GT(device.bytesPerSecond, previous->bytesPerSecond);
    }
    previous = &device;
  }
}

/// As NVIDIA's occupancy calculator counts them.
TEST(DeviceTest, BlocksPerSM) {
  const Device &a100 = *findDevice("sm_80"), &h100 = *findDevice("sm_90");
  EXPECT_EQ(h100.getBlocksPerSM(256, 0), 8);      // threads
  EXPECT_EQ(h100.getBlocksPerSM(32, 0), 32);      // blocks
  EXPECT_EQ(h100.getBlocksPerSM(1024, 0, 64), 1); // registers
  EXPECT_EQ(h100.getBlocksPerSM(128, 0, 255), 2);
  EXPECT_EQ(a100.getBlocksPerSM(128, 100 << 10), 1); // shared memory
  EXPECT_EQ(h100.getBlocksPerSM(128, 100 << 10), 2);
  EXPECT_EQ(h100.getBlocksPerSM(128, 227 << 10), 1);
  EXPECT_EQ(h100.getBlocksPerSM(128, (227 << 10) + 1), 0); // not even one
  EXPECT_EQ(h100.getBlocksPerSM(1025, 0), 0);
  EXPECT_EQ(h100.getBlocksPerSM(1024, 0, 128), 0);
}

} // namespace
