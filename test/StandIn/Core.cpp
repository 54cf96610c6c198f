//===- Core.cpp - Commands and their order --------------------------------===//

#include "Core.h"
#include "Streams.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

namespace standin {

std::recursive_mutex mutex;
Clock host(1, 1); // lane 0

namespace {
uint32_t numLanes = 1;
uint64_t numCommands = 0;
std::vector<Command *> ready, stalled;

/// Which of the commands that can run is run next: fifo, lifo, random:SEED or avoid:STREAM (that one last).
class Schedule {
public:
  Schedule() {
    const char *given = standInSetting("schedule");
    text = given ? given : "fifo";
    if (text.rfind("random:", 0) == 0)
      generator.seed(std::strtoull(text.c_str() + 7, nullptr, 10));
    if (text.rfind("avoid:", 0) == 0)
      avoided = static_cast<uint32_t>(std::atoi(text.c_str() + 6));
  }
  size_t pick() {
    if (text == "lifo")
      return ready.size() - 1;
    if (text.rfind("random:", 0) == 0)
      return generator() % ready.size();
    auto key = [&](const Command *command) { return std::make_pair(command->stream == avoided, command->number); };
    size_t best = 0;
    for (size_t i = 1; i < ready.size(); ++i)
      if (key(ready[i]) < key(ready[best]))
        best = i;
    return best;
  }

private:
  std::string text;
  std::mt19937_64 generator;
  uint32_t avoided = ~0u;
};

void release(Command *command) {
  if (--command->references == 0 && command->done)
    delete command;
}

void finish(Command *command) {
  command->done = true;
  for (Command *next : command->followers)
    if (--next->waits == 0)
      ready.push_back(next);
  command->followers.clear();
  if (command->references == 0)
    delete command;
}
} // namespace

bool isExecuting() {
  static const bool executes = [] {
    const char *given = standInSetting("execute");
    return !given || std::strcmp(given, "0") != 0;
  }();
  return executes;
}

void join(Clock &into, const Clock &from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

uint32_t makeLane() { return numLanes++; }

void Frontier::add(Command *command) {
  if (std::find(commands.begin(), commands.end(), command) != commands.end())
    return;
  ++command->references;
  commands.push_back(command);
}
void Frontier::add(const Frontier &other) {
  for (Command *command : other.commands)
    add(command);
}
void Frontier::assign(const Frontier &other) {
  std::vector<Command *> old = std::move(commands);
  commands.clear();
  add(other);
  for (Command *command : old)
    release(command);
}
void Frontier::clear() {
  for (Command *command : commands)
    release(command);
  commands.clear();
}
bool Frontier::isDone() const {
  return std::all_of(commands.begin(), commands.end(), [](const Command *command) { return command->done; });
}

Command *issue(std::shared_ptr<Work> work, const std::vector<Command *> &after, Clock &clock, uint32_t lane,
               uint32_t stream, uint64_t instance) {
  auto *command = new Command;
  command->work = work;
  command->instance = instance;
  command->lane = lane;
  command->stream = stream;
  command->number = numCommands++;
  if (clock.size() < numLanes)
    clock.resize(numLanes);
  command->tick = ++clock[lane];
  checkRaces(work, lane, clock);
  protectPinned(work, lane, command->tick);
  for (Command *other : after)
    if (!other->done) {
      ++command->waits;
      other->followers.push_back(command);
    }
  if (command->waits == 0)
    ready.push_back(command);
  return command;
}

Result enqueue(StreamHandle stream, std::shared_ptr<Work> work) {
  if (!stream)
    return kInvalidHandle; // the legacy stream orders itself with all others: nothing here may use it
  if (stream->graph) {
    stream->graph->nodes.push_back({std::move(work), stream->nodes, stream->number, nullptr});
    stream->nodes = {static_cast<int>(stream->graph->nodes.size()) - 1};
    return kSuccess;
  }
  if (!isExecuting())
    return kSuccess;
  join(stream->clock, host);
  Command *command =
      issue(std::move(work), stream->frontier.all(), stream->clock, stream->lane, stream->number, 0);
  Frontier next;
  next.add(command);
  stream->frontier.assign(next);
  return kSuccess;
}

/// With the setting "slow", in microseconds, that much time is between the beginnings of two commands.
static bool isBusy() {
  using Clock = std::chrono::steady_clock;
  static const char *given = standInSetting("slow");
  static Clock::time_point next;
  if (!given)
    return false;
  if (Clock::now() < next)
    return true;
  next = Clock::now() + std::chrono::microseconds(std::atoll(given));
  return false;
}

bool runUntil(const std::function<bool()> &isDone) {
  static Schedule schedule;
  ready.insert(ready.end(), stalled.begin(), stalled.end());
  stalled.clear();
  while (!isDone()) {
    if (ready.empty() || isBusy())
      return false;
    size_t at = schedule.pick();
    Command *command = ready[at];
    ready.erase(ready.begin() + static_cast<long>(at));
    if (command->work->run && !command->work->run(command->instance)) {
      stalled.push_back(command);
      continue;
    }
    finish(command);
    ready.insert(ready.end(), stalled.begin(), stalled.end());
    stalled.clear();
  }
  return true;
}

void waitUntil(const std::function<bool()> &isDone) {
  for (;;) {
    {
      std::lock_guard<std::recursive_mutex> lock(mutex);
      if (runUntil(isDone))
        return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50)); // other threads and processes go on
  }
}

void hostSees(const Clock &clock) {
  // [Note: the watchdog] A thread that only looks after the others' progress gives the host no order.
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (std::strcmp(name, "watchdog") == 0)
    return;
  join(host, clock);
  unprotectPinned();
}

} // namespace standin

using namespace standin;

STANDIN_API Result standInEnqueue(StreamHandle stream, const char *name, int (*run)(void *, uint64_t), void *context,
                                  const StandInRange *ranges, size_t numRanges) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto work = std::make_shared<Work>();
  work->name = name;
  work->ranges.assign(ranges, ranges + numRanges);
  work->run = [=](uint64_t instance) { return run(context, instance); };
  return enqueue(stream, std::move(work));
}
