//===- SimulationTest.cpp -------------------------------------------------===//
//
// What holds for every list of commands and all prices, on random ones; and small ones by hand.
//
//===----------------------------------------------------------------------===//

#include "spmd/Cost/Simulation.h"
#include "RandomCommands.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace spmd::cost;

static constexpr uint32_t kSeeds = 200;
static constexpr double kRounding = 1e-9; // relative

TEST(SimulationTest, NoCommandStartsBeforeItsDependenciesEnd) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    Simulation simulation = simulate(random.list, random.prices);
    std::vector<double> streamEnd(random.list.streams.size());
    for (size_t command = 0; command < random.list.size(); ++command) {
      double &before = streamEnd[static_cast<size_t>(random.list.stream[command])];
      ASSERT_GE(simulation.start[command], before) << "seed " << seed << ", command " << command;
      ASSERT_GE(simulation.end[command], simulation.start[command]);
      before = simulation.end[command];
      if (int32_t awaited = random.list.awaited[command]; awaited >= 0) {
        ASSERT_GE(simulation.end[command], simulation.end[static_cast<size_t>(awaited)]);
      }
    }
  }
}

TEST(SimulationTest, NoCommandIsFasterThanAlone) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    Simulation simulation = simulate(random.list, random.prices);
    for (size_t command = 0; command < random.list.size(); ++command)
      ASSERT_GE(simulation.end[command] - simulation.start[command], random.prices.alone(command) * (1 - kRounding));
  }
}

TEST(SimulationTest, WorkIsConserved) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 5, 80);
    Simulation simulation = simulate(random.list, random.prices);
    std::array<double, kNumResources> expected{};
    for (size_t command = 0; command < random.list.size(); ++command)
      expected[static_cast<size_t>(random.prices.resource[command])] += random.prices.seconds[command];
    for (size_t resource = 0; resource < kNumResources; ++resource) {
      ASSERT_NEAR(simulation.served[resource], expected[resource], kRounding) << "seed " << seed;
      ASSERT_GE(simulation.step, expected[resource] * (1 - kRounding));
    }
  }
}

TEST(SimulationTest, StepIsAtLeastEachStreamAndTheCriticalPath) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    double step = simulate(random.list, random.prices).step;
    std::vector<double> sums(random.list.streams.size());
    for (size_t command = 0; command < random.list.size(); ++command)
      sums[static_cast<size_t>(random.list.stream[command])] += random.prices.alone(command);
    for (double sum : sums)
      ASSERT_GE(step, sum * (1 - kRounding)) << "seed " << seed;
    ASSERT_GE(step, criticalPath(random.list, random.prices) * (1 - kRounding)) << "seed " << seed;
  }
}

TEST(SimulationTest, StepIsTheCriticalPathWhereNothingIsShared) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60, /*ownResources=*/true);
    random.prices.slowdown = 0;
    double step = simulate(random.list, random.prices).step, path = criticalPath(random.list, random.prices);
    ASSERT_NEAR(step, path, kRounding * path) << "seed " << seed;
  }
}

TEST(SimulationTest, EqualInputGivesEqualBits) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    Simulation first = simulate(random.list, random.prices), second = simulate(random.list, random.prices);
    ASSERT_EQ(first.step, second.step);
    ASSERT_EQ(first.start, second.start);
    ASSERT_EQ(first.end, second.end);
  }
}

TEST(SimulationTest, FasterCommandsAreNoSlowerWhereNothingIsShared) {
  // With shared resources a shorter command can put another one beside a third: there it need not be true.
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60, /*ownResources=*/true);
    random.prices.slowdown = 0;
    double before = simulate(random.list, random.prices).step;
    for (int i = 0; i < 10; ++i)
      random.prices.seconds[static_cast<size_t>(random.draw(60))] *= 0.5;
    ASSERT_LE(simulate(random.list, random.prices).step, before * (1 + kRounding)) << "seed " << seed;
  }
}

TEST(SimulationTest, AMachineTwiceAsFastTakesHalf) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    double before = simulate(random.list, random.prices).step;
    for (double &seconds : random.prices.seconds)
      seconds /= 2;
    for (double &latency : random.prices.latency)
      latency /= 2;
    ASSERT_NEAR(simulate(random.list, random.prices).step, before / 2, kRounding * before) << "seed " << seed;
  }
}

TEST(SimulationTest, AllStepsAreAlikeBehindABoundary) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    RandomCommands random(seed, 4, 60);
    double first = simulate(random.list, random.prices, {1, StepBoundary::AllStreams}).step;
    ASSERT_NEAR(simulate(random.list, random.prices, {3, StepBoundary::AllStreams}).step, first, kRounding * first);
  }
}

TEST(SimulationTest, StreamsOfTwoStepsOverlapWithoutABoundary) {
  // Stream 0 computes 10 and waits for 10 of stream 1: a second step starts the transfer while the first one computes.
  RandomCommands two(0, 2, 0);
  int32_t transfer = two.list.add(CommandKind::Collective, 1);
  two.list.addWait(0, transfer);
  two.list.add(CommandKind::Kernel, 0);
  two.prices.latency = {0, 0, 0};
  two.prices.seconds = {10, 0, 10};
  two.prices.resource = {Resource::Node, Resource::None, Resource::Device};
  two.prices.slows = {0, 0, 0};
  EXPECT_DOUBLE_EQ(simulate(two.list, two.prices).step, 20);
  EXPECT_DOUBLE_EQ(simulate(two.list, two.prices, {2, StepBoundary::OwnStream}).step, 10);
}

TEST(SimulationTest, CollectivesShareALinkAndSlowKernels) {
  // Two transfers of 1 s on one link, the second one with 0.5 s of latency, beside a kernel of 3 s.
  RandomCommands commands(0, 3, 0);
  commands.list.add(CommandKind::Kernel, 0);
  commands.list.add(CommandKind::Collective, 1);
  commands.list.add(CommandKind::Collective, 2);
  commands.prices.latency = {0, 0, 0.5};
  commands.prices.seconds = {3, 1, 1};
  commands.prices.resource = {Resource::Device, Resource::Node, Resource::Node};
  commands.prices.slows = {0, 1, 1};
  commands.prices.slowdown = 0.5;
  Simulation simulation = simulate(commands.list, commands.prices);
  EXPECT_DOUBLE_EQ(simulation.end[1], 1.5);
  EXPECT_DOUBLE_EQ(simulation.end[2], 2);
  // 2 s at 1 / 1.5, then alone.
  EXPECT_DOUBLE_EQ(simulation.end[0], 2 + (3 - 2 / 1.5));
}

TEST(SimulationTest, NoCommands) {
  EXPECT_EQ(simulate(CommandList(), Prices()).step, 0);
  EXPECT_EQ(criticalPath(CommandList(), Prices()), 0);
}

TEST(SimulationTest, TwoThousandCommandsTakeLessThanTwentyMilliseconds) {
  RandomCommands random(1, 5, 2000);
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 10; ++i) {
    auto begin = std::chrono::steady_clock::now();
    simulate(random.list, random.prices);
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(std::chrono::duration<double>(best).count(), 0.020);
}
