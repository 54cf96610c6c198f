//===- TensorTest.cpp - rounding, wrapping, strided copies, rank rows -----===//

#include "spmd/Interpreter/Tensor.h"
#include "spmd/Interpreter/RankRows.h"

#include "gtest/gtest.h"
#include <cmath>

using namespace spmd::interp;
using spmd::ReduceKind;

static Tensor iota(ShapeRef shape) {
  Tensor result(DType::f64, shape);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.set(i, i);
  return result;
}

static std::vector<double> values(const Tensor &tensor) {
  return std::vector<double>(tensor.reals().begin(), tensor.reals().end());
}

TEST(Tensor, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(roundTo(DType::bf16, 1 + std::ldexp(1.0, -8)), 1);
  EXPECT_EQ(roundTo(DType::bf16, 1 + 3 * std::ldexp(1.0, -8)), 1 + std::ldexp(1.0, -6));
  // Rounding to f32 first would make this a tie.
  EXPECT_EQ(roundTo(DType::bf16, 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 1 + std::ldexp(1.0, -7));
  EXPECT_EQ(roundTo(DType::f16, 65504), 65504);
  EXPECT_EQ(roundTo(DType::f16, 65520), INFINITY);
  EXPECT_EQ(roundTo(DType::f16, -65519), -65504);
  EXPECT_EQ(roundTo(DType::f16, std::ldexp(1.0, -24)), std::ldexp(1.0, -24)); // subnormal
  EXPECT_EQ(roundTo(DType::f16, std::ldexp(1.0, -25)), 0);
  EXPECT_EQ(roundTo(DType::f32, 0.1), double(0.1f));
  EXPECT_EQ(roundTo(DType::f64, 0.1), 0.1);
  EXPECT_TRUE(std::isnan(roundTo(DType::bf16, NAN)));
}

TEST(Tensor, IntegersWrap) {
  EXPECT_EQ(wrapTo(DType::i8, 200), -56);
  EXPECT_EQ(wrapTo(DType::u8, -1), 255);
  EXPECT_EQ(wrapTo(DType::i32, int64_t(1) << 32), 0);
  EXPECT_EQ(wrapTo(DType::i1, 2), 1);
}

TEST(Tensor, ConversionKeepsLargeIntegersAndTruncatesReals) {
  int64_t large = (int64_t(1) << 60) + 1;
  Tensor wide(DType::i64, {1}, std::vector<int64_t>{large});
  EXPECT_EQ(wide.converted(DType::i64).integers()[0], large);
  EXPECT_EQ(Tensor::scalar(DType::f64, -1.9).converted(DType::i64).integers()[0], -1);
  EXPECT_EQ(Tensor::scalar(DType::f64, 0.5).converted(DType::i1).integers()[0], 1);
}

TEST(Tensor, StridedReadsAndWritesAreInverse) {
  Tensor source = iota({2, 3, 4});
  Tensor permuted = gatherStrided(source, {4, 2, 3}, {1, 12, 4});
  EXPECT_EQ(permuted.reals()[1], 4);
  Tensor back(DType::f64, {2, 3, 4});
  scatterStrided(back, permuted, {1, 12, 4});
  EXPECT_TRUE(back.identical(source));
}

TEST(Tensor, BroadcastsFromTheRight) {
  EXPECT_EQ(*broadcastShapes({3, 1}, {2, 1, 4}), (Shape{2, 3, 4}));
  EXPECT_FALSE(broadcastShapes({3}, {4}));
  EXPECT_EQ(values(broadcastTo(iota({2, 1}), {2, 2})), (std::vector<double>{0, 0, 1, 1}));
}

TEST(RankRows, ChunksAreCutInsideEachPart) {
  // One dim of 2 parts x 5 rows in chunks of 2: the last rank has one row.
  Tensor whole = iota({10});
  EXPECT_EQ(values(takeRows(whole, 0, 2, 2, 0)), (std::vector<double>{0, 1, 5, 6}));
  EXPECT_EQ(values(takeRows(whole, 0, 2, 2, 2)), (std::vector<double>{4, 0, 9, 0}));
  EXPECT_EQ(values(takeRows(whole, 0, 2, 2, 3)), (std::vector<double>{0, 0, 0, 0}));
  std::vector<Tensor> parts;
  for (int64_t rank = 0; rank < 4; ++rank)
    parts.push_back(takeRows(whole, 0, 2, 2, rank));
  EXPECT_TRUE(joinRows(parts, 0, 2, 5).identical(whole));
}

TEST(RankRows, CombinesByKind) {
  Tensor a(DType::f64, {2}, std::vector<double>{3, -1}), b(DType::f64, {2}, std::vector<double>{4, NAN});
  EXPECT_EQ(combine({a, b}, ReduceKind::sum, false).reals()[0], 7);
  EXPECT_EQ(combine({a, b}, ReduceKind::max, false).reals()[0], 4);
  EXPECT_EQ(combine({a, b}, ReduceKind::min, false).reals()[0], 3);
  EXPECT_EQ(combine({a, b}, ReduceKind::norm2, false).reals()[0], 5);
  EXPECT_TRUE(std::isnan(combine({a, b}, ReduceKind::max, false).reals()[1]));
}

TEST(RankRows, RoundsEachPartialSumWhenAsked) {
  Tensor one = Tensor::scalar(DType::f32, 1), tiny = Tensor::scalar(DType::f32, std::ldexp(1.0, -24));
  EXPECT_EQ(combine({one, tiny, tiny}, ReduceKind::sum, true).reals()[0], 1);
  EXPECT_GT(combine({one, tiny, tiny}, ReduceKind::sum, false).reals()[0], 1);
}
