//===- ViewStatesTest.cpp - shards through views, against elements --------===//
//
// Every view between shapes of one size, every shard of the operand, several
// numbers of ranks: where mapThroughView says that the result is a shard, every
// rank's rows of the result must be its rows of the operand in the same flat
// order, for a rank computes the view on its rows alone.
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Partition/States.h"
#include "spmd/Interpreter/RankRows.h"

#include "gtest/gtest.h"

using namespace spmd;
using namespace spmd::interp;

namespace {

/// All shapes with at most `rank` dims and `size` elements, ones included.
std::vector<Shape> shapesOf(int64_t size, int64_t rank) {
  if (rank == 0)
    return size == 1 ? std::vector<Shape>{{}} : std::vector<Shape>{};
  std::vector<Shape> result = shapesOf(size, rank - 1);
  std::vector<Shape> longer;
  for (int64_t first = 1; first <= size; ++first)
    if (size % first == 0)
      for (const Shape &rest : shapesOf(size / first, rank - 1))
        if (static_cast<int64_t>(rest.size()) == rank - 1) {
          longer.push_back({first});
          longer.back().append(rest);
        }
  result.insert(result.end(), longer.begin(), longer.end());
  return result;
}

Tensor iota(ShapeRef shape) {
  Tensor result(DType::i64, shape);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.integerData()[i] = i + 1; // 0 is padding
  return result;
}

/// The rows of every rank, flat.
std::vector<std::vector<int64_t>> rowsOf(const Tensor &tensor, const AxisState &state, int64_t ranks) {
  std::vector<std::vector<int64_t>> result;
  for (int64_t rank = 0; rank < ranks; ++rank)
    result.push_back(takeRows(tensor, state.dim, state.pre, state.chunk, rank).integers().vec());
  return result;
}

/// Every shard of a shape for `ranks` ranks.
std::vector<AxisState> shardsOf(ShapeRef shape, int64_t ranks) {
  std::vector<AxisState> result;
  for (int64_t dim = 0, e = shape.size(); dim < e; ++dim)
    for (int64_t pre = 1; pre <= shape[dim]; ++pre)
      if (shape[dim] % pre == 0 && shape[dim] / pre > 1)
        result.push_back(AxisState::shard(dim, pre, partition::getChunk(shape[dim] / pre, ranks)));
  return result;
}

std::string describe(ShapeRef shape, const AxisState &state) {
  std::string text = state.str() + " of";
  for (int64_t size : shape)
    text += " " + std::to_string(size);
  return text;
}

} // namespace

class ViewStates : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(ViewStates, RanksHaveTheSameElements) {
  auto [size, ranks] = GetParam();
  std::vector<Shape> shapes = shapesOf(size, 3);
  int64_t mapped = 0;
  for (const Shape &from : shapes)
    for (const AxisState &state : shardsOf(from, ranks)) {
      auto rows = rowsOf(iota(from), state, ranks);
      for (const Shape &to : shapes) {
        std::optional<AxisState> result = partition::mapThroughView(from, state, to);
        if (result) {
          ++mapped;
          ASSERT_TRUE(result->isShard());
          ASSERT_EQ(rowsOf(iota(to), *result, ranks), rows)
              << describe(from, state) << " is not " << describe(to, *result) << " on " << ranks << " ranks";
          continue;
        }
        // Nothing better was overlooked.
        for (const AxisState &candidate : shardsOf(to, ranks))
          if (rowsOf(iota(to), candidate, ranks) == rows)
            ADD_FAILURE() << describe(from, state) << " would be " << describe(to, candidate) << " on " << ranks
                          << " ranks";
      }
    }
  EXPECT_GT(mapped, static_cast<int64_t>(shapes.size()));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ViewStates,
                         ::testing::Values(std::pair<int64_t, int64_t>{12, 2}, std::pair<int64_t, int64_t>{24, 2},
                                           std::pair<int64_t, int64_t>{24, 3}, std::pair<int64_t, int64_t>{20, 3},
                                           std::pair<int64_t, int64_t>{30, 4}, std::pair<int64_t, int64_t>{24, 5}));
