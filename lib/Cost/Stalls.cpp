//===- Stalls.cpp ---------------------------------------------------------===//

#include "spmd/Cost/Stalls.h"

using namespace spmd;
using namespace spmd::cost;

const char *spmd::cost::nameOf(StallCause cause) {
  constexpr const char *names[] = {"step begin", "gate", "queue"};
  return names[static_cast<size_t>(cause)];
}

namespace {

class StallFinder {
public:
  StallFinder(const CommandList &commands, const Prices &prices, const Simulation &simulation);

  std::vector<Stall> find(double least) const;

private:
  void explain(Stall &stall) const;
  double gainWithout(int32_t command) const;

  const CommandList &commands;
  const Prices &prices;
  const Simulation &simulation;
  std::vector<int32_t> previous; ///< of the same stream; -1: none
};

} // namespace

StallFinder::StallFinder(const CommandList &commands, const Prices &prices, const Simulation &simulation)
    : commands(commands), prices(prices), simulation(simulation) {
  std::vector<int32_t> last(commands.streams.size(), -1);
  for (size_t command = 0; command < commands.size(); ++command) {
    int32_t &before = last[static_cast<size_t>(commands.stream[command])];
    previous.push_back(before);
    before = static_cast<int32_t>(command);
  }
}

/// Goes back on the stream of the awaited command to what it had to wait for: a wait that held the stream, or a command
/// that took time.
void StallFinder::explain(Stall &stall) const {
  if (stall.begin < prices.alone(static_cast<size_t>(stall.awaited)))
    return;
  for (int32_t before = previous[static_cast<size_t>(stall.awaited)]; before >= 0;
       before = previous[static_cast<size_t>(before)]) {
    auto number = static_cast<size_t>(before);
    if (simulation.end[number] <= simulation.start[number])
      continue;
    bool isWait = commands.kind[number] == CommandKind::Wait;
    stall.cause = isWait ? StallCause::Gate : StallCause::Queue;
    stall.blocker = isWait ? commands.awaited[number] : before;
    return;
  }
}

double StallFinder::gainWithout(int32_t command) const {
  Prices without = prices;
  without.latency[static_cast<size_t>(command)] = without.seconds[static_cast<size_t>(command)] = 0;
  without.slows[static_cast<size_t>(command)] = 0;
  return simulation.step - simulate(commands, without).step;
}

std::vector<Stall> StallFinder::find(double least) const {
  int32_t compute = computeStream(commands, prices), last = -1, lastOfAll = -1;
  std::vector<Stall> stalls;
  auto add = [&](int32_t wait, int32_t awaited, double begin, double seconds) {
    if (seconds < least)
      return;
    Stall stall;
    stall.wait = wait;
    stall.awaited = awaited;
    stall.begin = begin;
    stall.seconds = seconds;
    explain(stall);
    stall.gain = gainWithout(awaited);
    stalls.push_back(stall);
  };
  for (size_t command = 0; command < commands.size(); ++command) {
    auto number = static_cast<int32_t>(command);
    if (lastOfAll < 0 || simulation.end[command] > simulation.end[static_cast<size_t>(lastOfAll)])
      lastOfAll = number;
    if (commands.stream[command] != compute)
      continue;
    last = number;
    if (commands.kind[command] == CommandKind::Wait)
      add(number, commands.awaited[command], simulation.start[command],
          simulation.end[command] - simulation.start[command]);
  }
  if (last >= 0)
    add(-1, lastOfAll, simulation.end[static_cast<size_t>(last)],
        simulation.step - simulation.end[static_cast<size_t>(last)]);
  return stalls;
}

std::vector<Stall> spmd::cost::findStalls(const CommandList &commands, const Prices &prices,
                                          const Simulation &simulation, double least) {
  return StallFinder(commands, prices, simulation).find(least);
}
