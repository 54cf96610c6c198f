#include "Conformance.h"

#include <algorithm>
#include <numeric>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

namespace {
class Memory : public Conformance {
protected:
  void onRank(int64_t ranks, const std::function<void(Rank &)> &body) {
    onRanks(ranks, std::chrono::seconds(20), body);
  }
};
SPMD_INSTANTIATE_CONFORMANCE(Memory);
} // namespace

TEST_P(Memory, ArenasAreZeroAtFirst) {
  onRank(2, [](Rank &rank) {
    std::vector<float> values = rank.read(0, rank.memory.bytes() / 4);
    EXPECT_GE(rank.memory.bytes(), 1 << 20);
    EXPECT_EQ(std::count(values.begin(), values.end(), 0.0f), static_cast<int64_t>(values.size()));
  });
}

TEST_P(Memory, CopiesAndFillsTouchTheirBytesAlone) {
  onRank(3, [](Rank &rank) {
    constexpr int64_t base = 65; // at any byte
    std::vector<char> expected(64, 0), found(64), bytes(9);
    for (int64_t offset : {1, 16, 37}) {
      std::iota(bytes.begin(), bytes.end(), static_cast<char>(rank.number * 40 + offset));
      ASSERT_TRUE(rank.memory.copyIn(rank.number, base + offset, bytes.data(), 9).ok());
      std::copy(bytes.begin(), bytes.end(), expected.begin() + offset);
    }
    ASSERT_TRUE(rank.memory.fill(rank.number, base + 20, 0xab, 3).ok());
    std::fill_n(expected.begin() + 20, 3, static_cast<char>(0xab));
    ASSERT_TRUE(rank.meet().ok()); // other ranks have written theirs
    ASSERT_TRUE(rank.memory.copyOut(rank.number, base, found.data(), 64).ok());
    EXPECT_EQ(found, expected) << "rank " << rank.number;
  });
}

TEST_P(Memory, GrowsAndKeepsTheState) {
  onRank(2, [](Rank &rank) {
    ASSERT_TRUE(rank.meet().ok());
    if (rank.number != rank.memory.ranks().first)
      return; // once a process
    for (int64_t number = rank.memory.ranks().first; number < rank.memory.ranks().end(); ++number) {
      auto value = static_cast<float>(number + 1);
      ASSERT_TRUE(rank.memory.copyIn(number, 256, &value, sizeof value).ok());
    }
    int64_t bytes = rank.memory.bytes(), generation = rank.memory.generation();
    const void *before = rank.memory.addressOf(rank.number, 0);
    ASSERT_TRUE(rank.memory.grow(bytes / 2, 512).ok());
    EXPECT_EQ(rank.memory.generation(), generation) << "it is large enough";
    ASSERT_TRUE(rank.memory.grow(bytes * 2, 512).ok());
    EXPECT_GE(rank.memory.bytes(), bytes * 2);
    EXPECT_TRUE(rank.memory.addressOf(rank.number, 0) == before || rank.memory.generation() != generation);
    for (int64_t number = rank.memory.ranks().first; number < rank.memory.ranks().end(); ++number) {
      float value = 0, tail = 1;
      ASSERT_TRUE(rank.memory.copyOut(number, 256, &value, sizeof value).ok());
      ASSERT_TRUE(rank.memory.copyOut(number, bytes * 2 - 4, &tail, sizeof tail).ok());
      EXPECT_EQ(value, static_cast<float>(number + 1));
      EXPECT_EQ(tail, 0);
    }
  });
}
