//===- HappensBefore.cpp --------------------------------------------------===//

#include "spmd/Runtime/Core/HappensBefore.h"

#include <algorithm>

using namespace spmd::runtime;

HappensBefore::HappensBefore(const Plan &plan)
    : numStreams(plan.streams.size()), streams(plan.commands.size()), positions(plan.commands.size()),
      clocks(plan.commands.size() * plan.streams.size()) {
  // now[s] is the clock of stream s after its latest command.
  std::vector<uint32_t> now(numStreams * numStreams);
  // The same after each command: a wait that is waited for has seen what it waited for.
  std::vector<uint32_t> after(clocks.size());
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    auto stream = static_cast<size_t>(command.stream);
    uint32_t *clock = &now[stream * numStreams];
    std::copy_n(clock, numStreams, &clocks[id * numStreams]);
    streams[id] = stream;
    positions[id] = clock[stream]++;
    if (command.kind == CommandKind::Wait) {
      // What the awaited command saw is visible from here on, and so is it.
      auto awaited = static_cast<size_t>(command.waitFor);
      for (size_t s = 0; s < numStreams; ++s)
        clock[s] = std::max(clock[s], after[awaited * numStreams + s]);
    }
    std::copy_n(clock, numStreams, &after[id * numStreams]);
  }
}
