#include "spmd/Runtime/Core/DType.h"
#include "TestSupport.h"
#include "spmd/Runtime/Core/HalfFloat.h"

using namespace spmd::runtime;

TEST(DType, NamesRoundTrip) {
  for (DType dtype : kDTypes) {
    EXPECT_EQ(findDType(static_cast<int32_t>(dtype)), dtype);
    EXPECT_EQ(parseDType(nameOf(dtype)), dtype);
    EXPECT_EQ(parseSafetensorsDType(safetensorsNameOf(dtype)), dtype);
  }
  EXPECT_FALSE(parseDType("f8"));
  EXPECT_FALSE(findDType(-1));
  EXPECT_FALSE(findDType(static_cast<int32_t>(std::size(kDTypes))));
}

TEST(DType, HalfFloatsRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(bits);
    auto halfValue = static_cast<float>(half);
    auto brainValue = static_cast<float>(brain);
    if (!std::isnan(halfValue)) {
      EXPECT_EQ(Float16(halfValue).bits, bits);
    }
    if (!std::isnan(brainValue)) {
      EXPECT_EQ(BFloat16(brainValue).bits, bits);
    }
  }
}

TEST(DType, HalfFloatsRoundToEven) {
  EXPECT_EQ(static_cast<float>(Float16(2049.0f)), 2048.0f);
  EXPECT_EQ(static_cast<float>(Float16(2051.0f)), 2052.0f);
  EXPECT_EQ(static_cast<float>(Float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(65520.0f))));
  EXPECT_EQ(static_cast<float>(Float16(-1e-9f)), 0.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(NAN))));
  EXPECT_EQ(static_cast<float>(BFloat16(257.0f)), 256.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(259.0f)), 260.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
}

TEST(DType, CountsElements) {
  EXPECT_EQ(numElements({}), 1);
  EXPECT_EQ(numElements({3, 0, 5}), 0);
  EXPECT_EQ(numElements({INT64_MAX, 2}), -1);
}
