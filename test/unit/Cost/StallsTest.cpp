//===- StallsTest.cpp -----------------------------------------------------===//

#include "spmd/Cost/Stalls.h"
#include "RandomCommands.h"

#include <gtest/gtest.h>

using namespace spmd::cost;

namespace {

/// Kernels on stream 0, collectives on stream 1.
struct Commands {
  CommandList list;
  Prices prices;

  Commands() { list.streams = {"compute", "gather"}; }

  int32_t add(int32_t stream, double seconds) {
    price(stream == 0 ? Resource::Device : Resource::Node, seconds);
    return list.add(stream == 0 ? CommandKind::Kernel : CommandKind::Collective, stream);
  }
  int32_t wait(int32_t stream, int32_t awaited) {
    price(Resource::None, 0);
    return list.addWait(stream, awaited);
  }
  std::vector<Stall> find(double least) { return findStalls(list, prices, simulate(list, prices), least); }

private:
  void price(Resource resource, double seconds) {
    prices.latency.push_back(0);
    prices.seconds.push_back(seconds);
    prices.resource.push_back(resource);
    prices.slows.push_back(0);
  }
};

} // namespace

TEST(StallsTest, CausesOfStalls) {
  Commands commands;
  int32_t first = commands.add(1, 2);        // 0 to 2
  int32_t begin = commands.wait(0, first);   // stalls 2
  int32_t kernel = commands.add(0, 4);       // 2 to 6
  commands.wait(1, kernel);                  // a gate, until 6
  int32_t gated = commands.add(1, 3);        // 6 to 9
  int32_t gate = commands.wait(0, gated);    // stalls 3
  int32_t queuedBehind = commands.add(1, 2); // 9 to 11
  int32_t queued = commands.add(1, 1);       // 11 to 12
  commands.add(0, 1);                        // 9 to 10
  int32_t queue = commands.wait(0, queued);  // stalls 2
  std::vector<Stall> stalls = commands.find(1);
  ASSERT_EQ(stalls.size(), 3u);
  EXPECT_EQ(stalls[0].wait, begin);
  EXPECT_EQ(stalls[0].cause, StallCause::StepBegin);
  EXPECT_DOUBLE_EQ(stalls[0].seconds, 2);
  EXPECT_DOUBLE_EQ(stalls[0].gain, 2);
  EXPECT_EQ(stalls[1].wait, gate);
  EXPECT_EQ(stalls[1].cause, StallCause::Gate);
  EXPECT_EQ(stalls[1].blocker, kernel);
  EXPECT_DOUBLE_EQ(stalls[1].seconds, 3);
  EXPECT_EQ(stalls[2].wait, queue);
  EXPECT_EQ(stalls[2].awaited, queued);
  EXPECT_EQ(stalls[2].cause, StallCause::Queue);
  EXPECT_EQ(stalls[2].blocker, queuedBehind);
  EXPECT_DOUBLE_EQ(stalls[2].seconds, 2);
  EXPECT_DOUBLE_EQ(stalls[2].gain, 1);
  EXPECT_EQ(commands.find(2.5).size(), 1u);
}

TEST(StallsTest, TheEndOfTheStepIsAStall) {
  Commands commands;
  int32_t kernel = commands.add(0, 5);
  commands.wait(1, kernel);
  int32_t last = commands.add(1, 2);
  std::vector<Stall> stalls = commands.find(1);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].wait, -1);
  EXPECT_EQ(stalls[0].awaited, last);
  EXPECT_EQ(stalls[0].blocker, kernel);
  EXPECT_DOUBLE_EQ(stalls[0].seconds, 2);
}

TEST(StallsTest, StallsAreTheIdleTimeOfTheComputeStream) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    RandomCommands random(seed, 4, 60);
    Simulation simulation = simulate(random.list, random.prices);
    int32_t compute = computeStream(random.list, random.prices);
    double busy = 0, stalled = 0;
    for (size_t command = 0; command < random.list.size(); ++command)
      if (random.list.stream[command] == compute && random.list.kind[command] != CommandKind::Wait)
        busy += simulation.end[command] - simulation.start[command];
    for (const Stall &stall : findStalls(random.list, random.prices, simulation, 0))
      stalled += stall.seconds;
    ASSERT_NEAR(busy + stalled, simulation.step, 1e-9) << "seed " << seed;
  }
}
