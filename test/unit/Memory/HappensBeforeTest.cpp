#include "spmd/Transforms/Memory/HappensBefore.h"
#include "gtest/gtest.h"
#include <random>

using namespace spmd::memory;

namespace {

// compute: 0 1 . . 4(waits for 3) 5      gather: 2 3
const StreamCommand kTwoStreams[] = {{0, -1}, {0, -1}, {1, -1}, {1, -1}, {0, 3}, {0, -1}};

TEST(HappensBeforeTest, StreamOrder) {
  HappensBefore order(kTwoStreams, 2);
  EXPECT_TRUE(order.precedes(0, 1));
  EXPECT_FALSE(order.precedes(1, 0));
  EXPECT_FALSE(order.precedes(1, 1));
}

TEST(HappensBeforeTest, OnlyWaitsOrderStreams) {
  HappensBefore order(kTwoStreams, 2);
  EXPECT_FALSE(order.precedes(1, 2)) << "program order is not happens-before";
  EXPECT_FALSE(order.precedes(3, 4)) << "a wait starts before the awaited command completes";
  EXPECT_TRUE(order.precedes(3, 5));
  EXPECT_TRUE(order.precedes(2, 5)) << "the awaited command brings its stream's prefix";
}

TEST(HappensBeforeTest, BufferOfAnotherStreamDiesAtTheWait) {
  HappensBefore order(kTwoStreams, 2);
  Uses gathered(2), during(2), after(2);
  gathered.add(1, 3);
  during.add(0, 4);
  after.add(0, 5);
  EXPECT_FALSE(gathered.precede(during, order));
  EXPECT_TRUE(gathered.precede(after, order));
  EXPECT_EQ(gathered.firstUse(), 3);
  EXPECT_EQ(gathered.lastUse(), 3);
}

// Against reachability over the edges, on random programs.
TEST(HappensBeforeTest, AgreesWithReachability) {
  std::mt19937 random(7);
  for (int round = 0; round != 200; ++round) {
    const int size = 24, streams = 3;
    std::vector<StreamCommand> commands(size);
    // completes[a][b]: a completes before b completes. starts[a][b]: a completes before b starts.
    bool completes[size][size] = {}, starts[size][size] = {};
    for (int b = 0; b != size; ++b) {
      commands[b].stream = random() % streams;
      int previous = -1;
      for (int a = 0; a != b; ++a)
        if (commands[a].stream == commands[b].stream)
          previous = a;
      if (b > 0 && random() % 3 == 0)
        if (int a = random() % b; commands[a].stream != commands[b].stream)
          commands[b].awaited = a;
      int64_t awaited = commands[b].awaited;
      for (int a = 0; a != b; ++a) {
        starts[a][b] = previous >= 0 && (a == previous || completes[a][previous]);
        completes[a][b] = starts[a][b] || (awaited >= 0 && (a == awaited || completes[a][awaited]));
      }
    }
    HappensBefore order(commands, streams);
    for (int a = 0; a != size; ++a)
      for (int b = 0; b != size; ++b)
        EXPECT_EQ(order.precedes(a, b), starts[a][b]) << a << " before " << b << " in round " << round;
    Uses uses(streams);
    for (int use : {static_cast<int>(random() % size), static_cast<int>(random() % size)})
      uses.add(commands[use].stream, use);
    for (int c = 0; c != size; ++c)
      EXPECT_EQ(c >= uses.findPast(commands[c].stream, order), uses.precede(c, order)) << c << " in round " << round;
  }
}

} // namespace
