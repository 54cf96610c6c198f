//===- StatesTest.cpp - shards through views, element by element ----------===//

#include "lib/Transforms/Partition/States.h"
#include "gtest/gtest.h"

using namespace spmd;
using namespace spmd::partition;

namespace {

using Shape = std::vector<int64_t>;

/// Flat numbers, in order, of the elements of the whole value that the rank has; -1 for padding.
std::vector<int64_t> elementsOf(const Shape &shape, const AxisState &state, int64_t rank) {
  int64_t outer = state.pre, inner = 1, total = shape[state.dim] / state.pre;
  for (int64_t i = 0; i < state.dim; ++i)
    outer *= shape[i];
  for (size_t i = state.dim + 1; i < shape.size(); ++i)
    inner *= shape[i];
  std::vector<int64_t> elements;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t row = rank * state.chunk; row < (rank + 1) * state.chunk; ++row)
      for (int64_t i = 0; i < inner; ++i)
        elements.push_back(row < total ? (o * total + row) * inner + i : -1);
  return elements;
}

/// All shapes with the given number of elements and at most four dimensions.
void collectShapes(int64_t elements, Shape &prefix, std::vector<Shape> &shapes) {
  if (elements == 1 && !prefix.empty())
    shapes.push_back(prefix);
  if (prefix.size() == 4)
    return;
  for (int64_t size = 1; size <= elements; ++size)
    if (elements % size == 0 && (size > 1 || prefix.size() < 2)) {
      prefix.push_back(size);
      collectShapes(elements / size, prefix, shapes);
      prefix.pop_back();
    }
}

TEST(StatesTest, MappedShardsHoldTheSameElements) {
  constexpr int64_t ranks = 2;
  int64_t mapped = 0;
  for (int64_t elements : {6, 12, 24}) {
    Shape prefix;
    std::vector<Shape> shapes;
    collectShapes(elements, prefix, shapes);
    for (const Shape &from : shapes)
      for (size_t dim = 0; dim < from.size(); ++dim)
        for (int64_t pre = 1; pre <= from[dim]; ++pre) {
          if (from[dim] % pre != 0)
            continue;
          AxisState state = AxisState::shard(dim, pre, getChunk(from[dim] / pre, ranks));
          for (const Shape &to : shapes) {
            std::optional<AxisState> result = mapThroughView(from, state, to);
            if (!result)
              continue;
            ++mapped;
            for (int64_t rank = 0; rank < ranks; ++rank)
              ASSERT_EQ(elementsOf(from, state, rank), elementsOf(to, *result, rank)) << "state " << state.str();
          }
        }
  }
  EXPECT_GT(mapped, 1000);
}

TEST(StatesTest, KeepsThePlaceInsideAMergedDimension) {
  // [T, B, C] to [T * B, C]
  EXPECT_EQ(mapThroughView({4, 8, 3}, AxisState::shard(1, 1, 4), {32, 3}), AxisState::shard(0, 4, 4));
  EXPECT_EQ(mapThroughView({32, 3}, AxisState::shard(0, 4, 4), {2, 2, 8, 3}), AxisState::shard(2, 1, 4));
}

TEST(StatesTest, RefusesWhatIsNoShardOfOneDimension) {
  // 2 parts of 3 rows on 2 ranks: chunks of 3 rows of 6 are the parts, chunks of 2 are not.
  EXPECT_EQ(mapThroughView({6, 4}, AxisState::shard(0, 1, 3), {2, 3, 4}), AxisState::shard(0, 1, 1));
  EXPECT_EQ(mapThroughView({6, 4}, AxisState::shard(0, 1, 2), {2, 3, 4}), std::nullopt);
}

TEST(StatesTest, PaddingIsWhatChunksHaveTooMuch) {
  EXPECT_EQ(getChunk(7, 2), 4);
  EXPECT_TRUE(hasPadding({7, 3}, AxisState::shard(0, 1, 4), 2));
  EXPECT_FALSE(hasPadding({8, 3}, AxisState::shard(0, 1, 4), 2));
}

} // namespace
