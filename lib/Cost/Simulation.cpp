//===- Simulation.cpp -----------------------------------------------------===//

#include "spmd/Cost/Simulation.h"

#include <algorithm>
#include <limits>

using namespace spmd;
using namespace spmd::cost;

namespace {

/// A stream's place in its commands, and what is left of the one that runs.
struct StreamState {
  std::vector<int32_t> commands;
  size_t next = 0; ///< of all steps: the command is commands[next % size]
  bool isRunning = false, hasArrived = false;
  double latency = 0, work = 0;

  int32_t head() const { return commands[next % commands.size()]; }
};

class Simulator {
public:
  Simulator(const CommandList &commands, const Prices &prices, const SimulationOptions &options);

  Simulation run();

private:
  /// Starts what can start, and ends what takes no time, until nothing changes.
  void startAll();
  bool tryStart(StreamState &stream);
  void finish(StreamState &stream);
  /// Lets time pass until the next command has its latency or its work behind it.
  bool advance();
  /// Seconds that pass for each second of the work of the running command.
  double stretchOf(const StreamState &stream) const;

  int64_t stepOf(const StreamState &stream) const { return static_cast<int64_t>(stream.next / stream.commands.size()); }
  bool hasEnded(int64_t step, int32_t command) const {
    return ended[static_cast<size_t>(step) * commands.size() + static_cast<size_t>(command)] != 0;
  }

  const CommandList &commands;
  const Prices &prices;
  SimulationOptions options;
  std::vector<StreamState> streams;
  std::vector<uint8_t> ended; ///< by step and command
  std::array<int32_t, kNumResources> active{};
  bool isSlowed = false;
  double now = 0;
  std::vector<int64_t> numEnded; ///< by step
  std::vector<double> stepEnd;
  Simulation result;
};

} // namespace

Simulator::Simulator(const CommandList &commands, const Prices &prices, const SimulationOptions &options)
    : commands(commands), prices(prices), options(options), streams(commands.streams.size()),
      ended(commands.size() * static_cast<size_t>(options.steps)), numEnded(static_cast<size_t>(options.steps)),
      stepEnd(static_cast<size_t>(options.steps)) {
  for (size_t command = 0; command < commands.size(); ++command)
    streams[static_cast<size_t>(commands.stream[command])].commands.push_back(static_cast<int32_t>(command));
  streams.erase(std::remove_if(streams.begin(), streams.end(), [](const auto &s) { return s.commands.empty(); }),
                streams.end());
  result.start.resize(commands.size());
  result.end.resize(commands.size());
}

bool Simulator::tryStart(StreamState &stream) {
  int64_t step = stepOf(stream);
  if (stream.isRunning || step == options.steps)
    return false;
  if (options.boundary == StepBoundary::AllStreams && step > 0 &&
      numEnded[static_cast<size_t>(step) - 1] < static_cast<int64_t>(commands.size()))
    return false;
  int32_t command = stream.head();
  auto number = static_cast<size_t>(command);
  if (!stream.hasArrived)
    result.start[number] = now;
  stream.hasArrived = true;
  if (int32_t awaited = commands.awaited[number]; awaited >= 0 && !hasEnded(step, awaited))
    return false;
  stream.latency = prices.latency[number];
  stream.work = prices.seconds[number];
  stream.isRunning = true;
  if (stream.latency <= 0 && stream.work <= 0)
    finish(stream);
  return true;
}

void Simulator::finish(StreamState &stream) {
  int64_t step = stepOf(stream);
  auto number = static_cast<size_t>(stream.head());
  result.end[number] = now;
  ended[static_cast<size_t>(step) * commands.size() + number] = 1;
  if (++numEnded[static_cast<size_t>(step)] == static_cast<int64_t>(commands.size()))
    stepEnd[static_cast<size_t>(step)] = now;
  stream.isRunning = stream.hasArrived = false;
  ++stream.next;
}

void Simulator::startAll() {
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (StreamState &stream : streams)
      while (tryStart(stream))
        hasChanged = true;
  }
}

double Simulator::stretchOf(const StreamState &stream) const {
  auto number = static_cast<size_t>(stream.head());
  double stretch = static_cast<double>(active[static_cast<size_t>(prices.resource[number])]);
  return prices.resource[number] == Resource::Device && isSlowed ? stretch * (1 + prices.slowdown) : stretch;
}

bool Simulator::advance() {
  active.fill(0);
  isSlowed = false;
  for (const StreamState &stream : streams)
    if (stream.isRunning) {
      auto number = static_cast<size_t>(stream.head());
      active[static_cast<size_t>(prices.resource[number])] += stream.latency <= 0;
      isSlowed |= prices.slows[number] != 0;
    }
  double passed = std::numeric_limits<double>::infinity();
  auto secondsLeft = [&](const StreamState &stream) {
    return stream.latency > 0 ? stream.latency : stream.work * stretchOf(stream);
  };
  for (const StreamState &stream : streams)
    if (stream.isRunning)
      passed = std::min(passed, secondsLeft(stream));
  if (passed == std::numeric_limits<double>::infinity())
    return false;
  now += passed;
  // What rounding leaves of a phase is no time of its own.
  double least = passed * (1 + 1e-12);
  for (StreamState &stream : streams) {
    if (!stream.isRunning)
      continue;
    bool isOver = secondsLeft(stream) <= least;
    if (stream.latency > 0) {
      stream.latency = isOver ? 0 : stream.latency - passed;
    } else {
      double done = isOver ? stream.work : passed / stretchOf(stream);
      if (stepOf(stream) + 1 == options.steps)
        result.served[static_cast<size_t>(prices.resource[static_cast<size_t>(stream.head())])] += done;
      stream.work -= done;
    }
    if (stream.latency <= 0 && stream.work <= 0)
      finish(stream);
  }
  return true;
}

Simulation Simulator::run() {
  do
    startAll();
  while (advance());
  double before = options.steps > 1 ? stepEnd[static_cast<size_t>(options.steps) - 2] : 0;
  for (size_t command = 0; command < commands.size(); ++command) {
    result.start[command] -= before;
    result.end[command] -= before;
  }
  result.step = commands.size() == 0 ? 0 : stepEnd.back() - before;
  return std::move(result);
}

Simulation spmd::cost::simulate(const CommandList &commands, const Prices &prices, const SimulationOptions &options) {
  return Simulator(commands, prices, options).run();
}

double spmd::cost::criticalPath(const CommandList &commands, const Prices &prices) {
  std::vector<double> streamEnd(commands.streams.size()), end(commands.size());
  double longest = 0;
  for (size_t command = 0; command < commands.size(); ++command) {
    double &last = streamEnd[static_cast<size_t>(commands.stream[command])];
    if (int32_t awaited = commands.awaited[command]; awaited >= 0)
      last = std::max(last, end[static_cast<size_t>(awaited)]);
    end[command] = last += prices.alone(command);
    longest = std::max(longest, last);
  }
  return longest;
}

int32_t spmd::cost::computeStream(const CommandList &commands, const Prices &prices) {
  std::vector<double> seconds(std::max<size_t>(commands.streams.size(), 1));
  for (size_t command = 0; command < commands.size(); ++command)
    if (isKernel(commands.kind[command]))
      seconds[static_cast<size_t>(commands.stream[command])] += prices.alone(command);
  return static_cast<int32_t>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
}
