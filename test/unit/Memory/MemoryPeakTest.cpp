#include "spmd/Runtime/Core/MemoryPeak.h"
#include "Conflicts.h"
#include "spmd/Transforms/Memory/HappensBefore.h"
#include "spmd/Transforms/Memory/Placement.h"
#include "gtest/gtest.h"
#include <random>

using namespace spmd;
using runtime::BufferLife;
using runtime::MemoryPeak;
using runtime::ScheduledCommand;

namespace {

/// Commands, buffers, and what placement knows of them: two buffers may share bytes only if all uses of one are complete
/// before any use of the other starts. This relation comes from the planner's own order, not from the peak's.
struct Program {
  std::vector<ScheduledCommand> commands;
  std::vector<BufferLife> lives;
  unsigned streams = 1;

  MemoryPeak findPeak() const {
    return runtime::findMemoryPeak(commands, runtime::HappensBefore(commands, streams), lives);
  }

  std::vector<std::vector<bool>> findOverlaps() const {
    std::vector<memory::StreamCommand> list;
    for (const ScheduledCommand &command : commands)
      list.push_back({static_cast<unsigned>(command.stream), command.awaited});
    memory::HappensBefore order(list, streams);
    auto diesBefore = [&](const BufferLife &a, const BufferLife &b) {
      if (a.toEnd || b.fromBegin)
        return false;
      for (int32_t use : a.uses)
        for (int32_t other : b.uses)
          if (!order.precedes(use, other))
            return false;
      return true;
    };
    std::vector<std::vector<bool>> overlaps(lives.size(), std::vector<bool>(lives.size()));
    for (size_t a = 0; a != lives.size(); ++a)
      for (size_t b = 0; b != lives.size(); ++b)
        overlaps[a][b] = !diesBefore(lives[a], lives[b]) && !diesBefore(lives[b], lives[a]);
    return overlaps;
  }
};

/// The heaviest set of buffers that all overlap each other, by trying all sets.
int64_t findHeaviestClique(const Program &program) {
  auto overlaps = program.findOverlaps();
  int64_t best = 0;
  for (uint32_t set = 0; set != 1u << program.lives.size(); ++set) {
    int64_t bytes = 0;
    bool isClique = true;
    for (size_t a = 0; isClique && a != program.lives.size(); ++a) {
      if (!(set >> a & 1) || !program.lives[a].isUsed())
        continue;
      bytes += program.lives[a].bytes;
      for (size_t b = 0; b != a; ++b)
        isClique &= !(set >> b & 1) || !program.lives[b].isUsed() || overlaps[a][b];
    }
    if (isClique)
      best = std::max(best, bytes);
  }
  return best;
}

Program makeProgram(std::mt19937 &random, int numCommands, int numBuffers) {
  Program program;
  program.streams = 1 + random() % 4;
  for (int c = 0; c != numCommands; ++c) {
    ScheduledCommand command{static_cast<int32_t>(random() % program.streams), -1};
    if (c > 0 && random() % 3 == 0)
      if (auto a = static_cast<int32_t>(random() % c); program.commands[a].stream != command.stream)
        command.awaited = a;
    program.commands.push_back(command);
  }
  for (int b = 0; b != numBuffers; ++b) {
    BufferLife life;
    life.bytes = 1 + random() % 100;
    int first = random() % numCommands, last = std::min<int>(numCommands, first + 1 + random() % 6);
    for (int c = first; c != last; ++c)
      if (program.commands[c].awaited < 0 && random() % 3 != 0)
        life.uses.push_back(c);
    life.fromBegin = random() % 8 == 0;
    life.toEnd = random() % 8 == 0;
    program.lives.push_back(life);
  }
  return program;
}

// compute: 0 writes a gradient. reduce: 1 reduces it into a chunk. compute: 2 and 3 run on, 4 waits for 1, 5 goes on.
TEST(MemoryPeakTest, InFlightUntilWaitedFor) {
  Program program;
  program.streams = 2;
  program.commands = {{0, -1}, {1, 0}, {1, -1}, {0, -1}, {0, -1}, {0, 2}, {0, -1}};
  program.lives = {{1000, {0, 2}}, {100, {2}}, {10, {3, 4}}, {1, {6}}};
  MemoryPeak peak = program.findPeak();
  EXPECT_EQ(peak.bytes, 1110) << "the gradient is read until command 5 has waited, whatever command 4 is doing";
  EXPECT_EQ(peak.alive, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(peak.command, 3);
}

TEST(MemoryPeakTest, NothingAndUnused) {
  Program program;
  EXPECT_EQ(program.findPeak().bytes, 0);
  program.commands = {{0, -1}};
  program.lives = {{100, {}}};
  EXPECT_EQ(program.findPeak().bytes, 0);
  EXPECT_EQ(program.findPeak().command, -1);
}

TEST(MemoryPeakTest, EarliestOfEqualPeaks) {
  Program program;
  program.commands = {{0, -1}, {0, -1}, {0, -1}};
  program.lives = {{7, {0}}, {7, {2}}};
  EXPECT_EQ(program.findPeak().alive, std::vector<size_t>{0});
  EXPECT_EQ(program.findPeak().command, 0);
}

// It is the heaviest set of buffers that all overlap each other: less is no peak, more no lower bound.
TEST(MemoryPeakTest, IsTheHeaviestClique) {
  std::mt19937 random(3);
  for (int round = 0; round != 3000; ++round) {
    Program program = makeProgram(random, 6 + random() % 14, 1 + random() % 9);
    MemoryPeak peak = program.findPeak();
    ASSERT_EQ(peak.bytes, findHeaviestClique(program)) << "round " << round;
    auto overlaps = program.findOverlaps();
    int64_t bytes = 0;
    for (size_t a : peak.alive) {
      bytes += program.lives[a].bytes;
      for (size_t b : peak.alive)
        ASSERT_TRUE(a == b || overlaps[a][b]) << "buffers " << a << " and " << b << " in round " << round;
    }
    ASSERT_EQ(peak.bytes, bytes);
  }
}

// No placement is below it; on plans of hundreds of buffers placement comes close.
TEST(MemoryPeakTest, IsALowerBoundOfPlacement) {
  std::mt19937 random(5);
  double total = 0;
  const int rounds = 60;
  for (int round = 0; round != rounds; ++round) {
    Program program = makeProgram(random, 200 + random() % 200, 150 + random() % 150);
    std::vector<memory::BufferRequest> requests;
    for (const BufferLife &life : program.lives) {
      int64_t end = program.commands.size();
      memory::BufferRequest request{life.isUsed() ? life.bytes : 0, 0, end};
      if (!life.fromBegin && !life.uses.empty())
        request.first = life.uses.front();
      if (!life.toEnd && !life.uses.empty())
        request.last = life.uses.back();
      requests.push_back(request);
    }
    auto overlaps = program.findOverlaps();
    auto conflicts = memory::findConflicts(requests.size(), [&](unsigned a, unsigned b) { return overlaps[a][b]; });
    int64_t bound = program.findPeak().bytes;
    memory::Placement placement = memory::placeBuffers(requests, conflicts, 1);
    ASSERT_GE(placement.bytes, bound) << "round " << round;
    EXPECT_EQ(memory::placeBuffers(requests, conflicts, 1, bound).offsets, placement.offsets) << "round " << round;
    total += static_cast<double>(placement.bytes) / bound;
  }
  EXPECT_LE(total / rounds, 1.05);
}

} // namespace
