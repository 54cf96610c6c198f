#include "spmd/Transforms/Memory/Placement.h"
#include "Conflicts.h"
#include "gtest/gtest.h"
#include <random>

using namespace spmd::memory;

namespace {

bool overlap(const BufferRequest &a, const BufferRequest &b) { return a.first <= b.last && b.first <= a.last; }

/// The most bytes at one position: buffers whose positions overlap can never share any.
int64_t getLowerBound(const std::vector<BufferRequest> &requests, int64_t alignment) {
  int64_t most = 0;
  for (const BufferRequest &at : requests) {
    int64_t bytes = 0;
    for (const BufferRequest &request : requests)
      if (request.first <= at.first && at.first <= request.last)
        bytes += (request.bytes + alignment - 1) / alignment * alignment;
    most = std::max(most, bytes);
  }
  return most;
}

Placement place(const std::vector<BufferRequest> &requests, int64_t alignment = 1) {
  return placeBuffers(
      requests,
      findConflicts(requests.size(), [&](unsigned i, unsigned j) { return overlap(requests[i], requests[j]); }),
      alignment);
}

/// Checks that conflicting buffers share no byte and that all lie inside the placement.
void expectSound(const std::vector<BufferRequest> &requests, const Placement &placement, int64_t alignment) {
  for (size_t i = 0; i != requests.size(); ++i) {
    EXPECT_GE(placement.offsets[i], 0);
    EXPECT_EQ(placement.offsets[i] % alignment, 0);
    EXPECT_EQ(placement.offsets[i] % requests[i].alignment, 0);
    EXPECT_LE(placement.offsets[i] + requests[i].bytes, placement.bytes);
    for (size_t j = i + 1; j != requests.size(); ++j)
      if (overlap(requests[i], requests[j])) {
        bool apart = placement.offsets[i] + requests[i].bytes <= placement.offsets[j] ||
                     placement.offsets[j] + requests[j].bytes <= placement.offsets[i];
        EXPECT_TRUE(apart) << "buffers " << i << " and " << j << " overlap";
      }
  }
}

TEST(PlacementTest, Nothing) {
  EXPECT_EQ(place({}).bytes, 0);
}

TEST(PlacementTest, ReusesDeadBytes) {
  std::vector<BufferRequest> requests = {{100, 0, 1}, {100, 2, 3}};
  Placement placement = place(requests);
  EXPECT_EQ(placement.bytes, 100);
  EXPECT_EQ(placement.offsets[0], placement.offsets[1]);
}

TEST(PlacementTest, UsesAtOnePositionConflict) { EXPECT_EQ(place({{100, 0, 2}, {100, 2, 3}}).bytes, 200); }

TEST(PlacementTest, ConflictsBeyondPositionsAreKept) {
  std::vector<BufferRequest> requests = {{100, 0, 1}, {100, 2, 3}};
  EXPECT_EQ(placeBuffers(requests, findConflicts(requests.size(), [](unsigned, unsigned) { return true; }), 1).bytes,
            200);
}

TEST(PlacementTest, RoundsUpToTheAlignment) {
  std::vector<BufferRequest> requests = {{1, 0, 0}, {65, 0, 0}};
  Placement placement = place(requests, 64);
  expectSound(requests, placement, 64);
  EXPECT_EQ(placement.bytes, 192);
}

// Behind all others, and in gaps between them.
TEST(PlacementTest, ABufferHasAnAlignmentOfItsOwn) {
  std::mt19937 random(7);
  for (int round = 0; round != 20; ++round) {
    std::vector<BufferRequest> requests;
    for (int i = 0; i != 60; ++i) {
      int64_t first = random() % 40, last = first + static_cast<int64_t>(random() % 20);
      requests.push_back({1 + static_cast<int64_t>(random() % 3000), first, last, random() % 3 ? 1 : 512});
    }
    expectSound(requests, place(requests, 64), 64);
  }
}

// [Note: an example of placement]
TEST(PlacementTest, OneOrderIsNotEnough) {
  Placement placement = place({{2, 0, 1}, {2, 3, 3}, {1, 1, 2}, {1, 2, 3}});
  EXPECT_EQ(placement.bytes, 3);
  EXPECT_EQ(placement.strategy, "pressure");
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{0, 1, 2, 0}));
}

// The search ends where nothing better can be found, and finds the same with and without knowing.
TEST(PlacementTest, LowerBoundChangesNothing) {
  std::vector<BufferRequest> requests = {{10, 0, 5}, {20, 3, 4}, {5, 4, 9}, {30, 6, 7}};
  auto conflicts =
      findConflicts(requests.size(), [&](unsigned i, unsigned j) { return overlap(requests[i], requests[j]); });
  Placement placement = placeBuffers(requests, conflicts, 1), early = placeBuffers(requests, conflicts, 1, 35);
  EXPECT_EQ(placement.bytes, 35);
  EXPECT_EQ(placement.offsets, early.offsets);
}

// Lifetimes of any kind: never an overlap, and close to the bound.
TEST(PlacementTest, RandomIntervals) {
  std::mt19937 random(11);
  double total = 0;
  const int rounds = 60;
  for (int round = 0; round != rounds; ++round) {
    std::vector<BufferRequest> requests;
    for (int i = 0; i != 200; ++i) {
      int64_t first = random() % 400, life = random() % 8 == 0 ? random() % 200 : random() % 12;
      requests.push_back({1 + static_cast<int64_t>(random() % (1 << (4 + random() % 14))), first, first + life});
    }
    Placement placement = place(requests, 64);
    expectSound(requests, placement, 64);
    double ratio = static_cast<double>(placement.bytes) / getLowerBound(requests, 64);
    EXPECT_LE(ratio, 1.25) << "round " << round;
    total += ratio;
  }
  EXPECT_LE(total / rounds, 1.05);
}

// The shape of a training step: values kept from forward to backward, short-lived ones beside them, and a gathered unit
// per layer and direction.
TEST(PlacementTest, TrainingStep) {
  std::vector<BufferRequest> requests;
  const int64_t layers = 12, steps = 20, end = 2 * layers * steps;
  for (int64_t layer = 0; layer != layers; ++layer) {
    int64_t forward = layer * steps, backward = end - (layer + 1) * steps;
    requests.push_back({28 << 20, forward, forward + steps});
    requests.push_back({28 << 20, backward, backward + steps});
    requests.push_back({28 << 20, backward, backward + steps + 3});
    for (int64_t kept = 0; kept != 7; ++kept)
      requests.push_back({(kept % 3 + 1) << 20, forward + kept * 2, end - forward - kept * 2});
    for (int64_t op = 0; op + 1 < steps; ++op)
      requests.push_back({(op % 4 + 1) << 20, forward + op, forward + op + 1 + op % 2});
  }
  Placement placement = place(requests, 64);
  expectSound(requests, placement, 64);
  EXPECT_LE(placement.bytes, 1.02 * getLowerBound(requests, 64));
}

} // namespace
