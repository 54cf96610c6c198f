//===- HappensBefore.cpp --------------------------------------------------===//

#include "spmd/Runtime/Core/HappensBefore.h"

#include <algorithm>

using namespace spmd::runtime;

std::vector<ScheduledCommand> spmd::runtime::getSchedule(const Plan &plan) {
  std::vector<ScheduledCommand> commands;
  for (const Command &command : plan.commands) {
    const auto *wait = command.as<WaitCommand>();
    commands.push_back({command.stream, wait ? wait->awaited : -1});
  }
  return commands;
}

HappensBefore::HappensBefore(const Plan &plan) : HappensBefore(getSchedule(plan), plan.streams.size()) {}

HappensBefore::HappensBefore(const std::vector<ScheduledCommand> &commands, size_t numStreams)
    : numStreams(numStreams), streams(commands.size()), positions(commands.size()),
      clocks(commands.size() * numStreams) {
  // now[s] is the clock of stream s after its latest command.
  std::vector<uint32_t> now(numStreams * numStreams);
  // The same after each command: a wait that is waited for has seen what it waited for.
  std::vector<uint32_t> after(clocks.size());
  for (size_t id = 0; id < commands.size(); ++id) {
    auto stream = static_cast<size_t>(commands[id].stream);
    uint32_t *clock = &now[stream * numStreams];
    std::copy_n(clock, numStreams, &clocks[id * numStreams]);
    streams[id] = stream;
    positions[id] = clock[stream]++;
    if (commands[id].awaited >= 0) {
      // What the awaited command saw is visible from here on, and so is it.
      auto awaited = static_cast<size_t>(commands[id].awaited);
      for (size_t s = 0; s < numStreams; ++s)
        clock[s] = std::max(clock[s], after[awaited * numStreams + s]);
    }
    std::copy_n(clock, numStreams, &after[id * numStreams]);
  }
}
