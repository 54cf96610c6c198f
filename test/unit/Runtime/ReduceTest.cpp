#include "spmd/Runtime/Core/Reduce.h"
#include "TestSupport.h"

#include <cmath>
#include <limits>

using namespace spmd::runtime;

TEST(Reduce, GoesFromLeftToRight) {
  // In float, 1e8 + 1 - 1e8 depends on the order.
  float a = 1e8f, b = 1, c = -1e8f, out = 0;
  const void *inputs[] = {&a, &b, &c};
  reduceInOrder(DType::F32, ReductionKind::Sum, inputs, 3, &out, 1);
  EXPECT_EQ(out, 0);
  const void *other[] = {&a, &c, &b};
  reduceInOrder(DType::F32, ReductionKind::Sum, other, 3, &out, 1);
  EXPECT_EQ(out, 1);
}

TEST(Reduce, Kinds) {
  double a[] = {3, -1}, b[] = {-4, 5}, out[2];
  const void *inputs[] = {a, b};
  reduceInOrder(DType::F64, ReductionKind::Max, inputs, 2, out, 2);
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 5);
  reduceInOrder(DType::F64, ReductionKind::Min, inputs, 2, out, 2);
  EXPECT_EQ(out[0], -4);
  EXPECT_EQ(out[1], -1);
  reduceInOrder(DType::F64, ReductionKind::Norm2, inputs, 2, out, 2);
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[1], std::sqrt(26.0));
}

TEST(Reduce, KeepsNaN) {
  float nan = std::numeric_limits<float>::quiet_NaN(), one = 1, out;
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max, ReductionKind::Min, ReductionKind::Norm2}) {
    const void *first[] = {&nan, &one}, *second[] = {&one, &nan};
    reduceInOrder(DType::F32, kind, first, 2, &out, 1);
    EXPECT_TRUE(std::isnan(out)) << nameOf(kind);
    reduceInOrder(DType::F32, kind, second, 2, &out, 1);
    EXPECT_TRUE(std::isnan(out)) << nameOf(kind);
  }
}

TEST(Reduce, AccumulatesHalvesInFloat) {
  // Each addition alone would be rounded away in bf16.
  std::vector<uint8_t> a(2), b(2), out(2);
  storeFromDouble(a.data(), DType::BF16, 0, 256);
  storeFromDouble(b.data(), DType::BF16, 0, 1);
  const void *inputs[] = {a.data(), b.data(), b.data()};
  reduceInOrder(DType::BF16, ReductionKind::Sum, inputs, 3, out.data(), 1);
  EXPECT_EQ(loadAsDouble(out.data(), DType::BF16, 0), 258);
}

TEST(Reduce, OneInputPassesThrough) {
  float in = -3, out = 0;
  const void *inputs[] = {&in};
  reduceInOrder(DType::F32, ReductionKind::Norm2, inputs, 1, &out, 1);
  EXPECT_EQ(out, -3);
}

TEST(Reduce, WorksInPlaceOverManyBlocks) {
  constexpr int64_t count = 10000;
  std::vector<float> a(count), b(count);
  for (int64_t i = 0; i < count; ++i) {
    a[static_cast<size_t>(i)] = static_cast<float>(i);
    b[static_cast<size_t>(i)] = 0.5f;
  }
  const void *inputs[] = {a.data(), b.data()};
  reduceInOrder(DType::F32, ReductionKind::Sum, inputs, 2, b.data(), count);
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(b[static_cast<size_t>(i)], static_cast<float>(i) + 0.5f);
}
