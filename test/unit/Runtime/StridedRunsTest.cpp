// Whether elements at strides meet, against all of them written out.
#include "lib/Runtime/Core/StridedRuns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace spmd::runtime;

namespace {
struct Runs {
  int64_t offset;
  std::vector<std::pair<int64_t, int64_t>> dims;
  int64_t columns;

  StridedRuns make() const { return {offset, dims, columns}; }
  /// All elements; `isTwice`: one of them is there twice.
  std::set<int64_t> list(bool &isTwice) const {
    std::vector<int64_t> all = {offset};
    for (auto [stride, count] : dims) {
      std::vector<int64_t> next;
      for (int64_t begin : all)
        for (int64_t i = 0; i < count; ++i)
          next.push_back(begin + i * stride);
      all = next;
    }
    std::set<int64_t> elements;
    for (int64_t begin : all)
      for (int64_t i = 0; i < columns; ++i)
        isTwice |= !elements.insert(begin + i).second;
    return elements;
  }
};
} // namespace

TEST(StridedRuns, AreWhatIsWrittenOut) {
  std::mt19937 random(1);
  auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  int64_t apart = 0, together = 0, twice = 0;
  for (int round = 0; round < 20000; ++round) {
    Runs a{below(40), {{below(60), 1 + below(3)}, {below(30), 1 + below(3)}, {below(9), 1 + below(3)}}, 1 + below(4)};
    bool hasSame = below(2);
    Runs b = a;
    b.offset = below(60);
    b.columns = 1 + below(4);
    for (auto &[stride, count] : b.dims) {
      count = 1 + below(3);
      if (!hasSame)
        stride = below(60);
    }
    bool isTwice = false;
    std::set<int64_t> ofA = a.list(isTwice);
    if (isTwice)
      EXPECT_TRUE(a.make().mayOverlapItself());
    std::set<int64_t> ofB = b.list(isTwice);
    if (a.make().mayOverlapItself() || b.make().mayOverlapItself()) {
      ++twice;
      continue;
    }
    EXPECT_FALSE(isTwice);
    bool meet = std::any_of(ofA.begin(), ofA.end(), [&](int64_t element) { return ofB.count(element) > 0; });
    (meet ? together : apart) += 1;
    // Of small sizes the answer is exact.
    EXPECT_EQ(a.make().mayOverlap(b.make()), meet) << "round " << round;
    EXPECT_EQ(b.make().mayOverlap(a.make()), meet) << "round " << round;
  }
  EXPECT_GT(apart, 1000);
  EXPECT_GT(together, 1000);
  EXPECT_GT(twice, 1000);
}

TEST(StridedRuns, MayBeAsLargeAsSizesAre) {
  int64_t most = int64_t{1} << 50;
  StridedRuns a(0, {{most, most}}, most), b(most, {{most, most}}, 1);
  EXPECT_FALSE(a.mayOverlapItself());
  EXPECT_TRUE(a.mayOverlap(b));
  EXPECT_TRUE(StridedRuns(0, {{most - 1, most}}, most).mayOverlapItself());
  StridedRuns even(0, {{2, most}}, 1), odd(1, {{2, most}}, 1);
  EXPECT_FALSE(even.mayOverlap(odd));
  // Of very many at other strides it says that they may.
  EXPECT_TRUE(even.mayOverlap(StridedRuns(1, {{4, most}}, 1)));
}
