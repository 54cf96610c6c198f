//===- MemoryPeak.cpp -----------------------------------------------------===//
//
// [Note: cuts] A moment of an execution is a set of complete commands that is
// closed under the order: with a command the one before it on its stream, and
// with a wait what it waited for. A buffer is born where its first use may
// start, that is where all commands before it are complete, and dead where all
// its uses are. So the bytes alive at a moment are a sum over its commands of
// what they let begin less what they end, and the peak is a closure of maximum
// weight.
//
// Most buffers are born and die at one command. Where uses on two streams are
// not ordered, there is a node that stands for what all first uses have behind
// them, or for all last uses being complete; with them the buffers alive at a
// closure are exactly those of which no two may share bytes, and every such set
// is alive at some closure.
//
// Where all commands are on one stream, closures are what came before a moment,
// and a sum over moments finds the peak.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/MemoryPeak.h"

#include "MaximumClosure.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {

/// Per stream, how many of its commands.
using Clock = std::vector<uint32_t>;

/// Everything in `a` is in `b`.
bool isWithin(const Clock &a, const uint32_t *b) {
  for (size_t s = 0; s < a.size(); ++s)
    if (a[s] > b[s])
      return false;
  return true;
}

/// Buffer `i` is alive at the peak.
void addAlive(MemoryPeak &peak, const std::vector<BufferLife> &lives, size_t i) {
  const BufferLife &life = lives[i];
  peak.bytes += life.bytes;
  peak.alive.push_back(i);
  if (!life.fromBegin && !life.uses.empty())
    peak.command = std::max(peak.command, *std::min_element(life.uses.begin(), life.uses.end()));
}

class PeakFinder {
public:
  PeakFinder(const std::vector<ScheduledCommand> &commands, const HappensBefore &order,
             const std::vector<BufferLife> &lives);
  MemoryPeak find();

private:
  void addOrder();
  size_t addBirth(const BufferLife &life);
  size_t addDeath(const BufferLife &life);
  /// The node of the last command that is complete when `count` of a stream's are.
  size_t lastOf(size_t stream, uint32_t count) const { return static_cast<size_t>(byStream[stream][count - 1]); }

  static constexpr size_t kAlways = SIZE_MAX;

  const std::vector<ScheduledCommand> &commands;
  const HappensBefore &order;
  const std::vector<BufferLife> &lives;
  std::vector<std::vector<int32_t>> byStream; ///< commands, in order
  ClosureProblem problem;                     ///< nodes: the commands, and those below
  size_t begin = 0, end = 0;                  ///< the first command may start; all commands are complete
  struct Meeting {
    Clock clock;
    size_t node;
  };
  std::vector<Meeting> births, deaths; ///< of buffers with unordered first, or last, uses
};

} // namespace

PeakFinder::PeakFinder(const std::vector<ScheduledCommand> &commands, const HappensBefore &order,
                       const std::vector<BufferLife> &lives)
    : commands(commands), order(order), lives(lives), byStream(order.streamCount()) {
  for (size_t id = 0; id < commands.size(); ++id)
    byStream[static_cast<size_t>(commands[id].stream)].push_back(static_cast<int32_t>(id));
}

void PeakFinder::addOrder() {
  for (size_t id = 0; id < commands.size(); ++id)
    problem.addNode();
  begin = problem.addNode();
  end = problem.addNode();
  problem.addRequirement(end, begin);
  for (const std::vector<int32_t> &stream : byStream) {
    size_t previous = begin;
    for (int32_t id : stream) {
      auto node = static_cast<size_t>(id);
      problem.addRequirement(node, previous);
      if (commands[node].awaited >= 0)
        problem.addRequirement(node, static_cast<size_t>(commands[node].awaited));
      previous = node;
    }
    problem.addRequirement(end, previous);
  }
}

/// The node at which the first use may start.
size_t PeakFinder::addBirth(const BufferLife &life) {
  if (life.fromBegin)
    return kAlways;
  if (life.uses.empty())
    return end;
  Clock clock(order.streamCount(), UINT32_MAX);
  for (int32_t use : life.uses)
    for (size_t s = 0; s < clock.size(); ++s)
      clock[s] = std::min(clock[s], order.clock(use)[s]);
  if (std::all_of(clock.begin(), clock.end(), [](uint32_t count) { return count == 0; }))
    return begin;
  for (int32_t use : life.uses)
    if (std::equal(clock.begin(), clock.end(), order.clock(use)))
      return lastOf(static_cast<size_t>(commands[static_cast<size_t>(use)].stream), order.position(use));
  size_t node = problem.addNode();
  problem.addRequirement(node, begin);
  for (size_t s = 0; s < clock.size(); ++s)
    if (clock[s] > 0)
      problem.addRequirement(node, lastOf(s, clock[s]));
  births.push_back({clock, node});
  return node;
}

/// The node at which all uses are complete.
size_t PeakFinder::addDeath(const BufferLife &life) {
  if (life.toEnd)
    return kAlways;
  if (life.uses.empty())
    return begin;
  Clock clock(order.streamCount(), 0);
  for (int32_t use : life.uses) {
    auto stream = static_cast<size_t>(commands[static_cast<size_t>(use)].stream);
    clock[stream] = std::max(clock[stream], order.position(use) + 1);
  }
  for (size_t s = 0; s < clock.size(); ++s) {
    if (clock[s] == 0)
      continue;
    Clock others = clock;
    others[s] = 0;
    if (size_t last = lastOf(s, clock[s]); isWithin(others, order.clock(static_cast<int32_t>(last))))
      return last;
  }
  size_t node = problem.addNode();
  // The first command of each stream that starts after all of them.
  for (const std::vector<int32_t> &stream : byStream) {
    auto after = std::partition_point(stream.begin(), stream.end(),
                                      [&](int32_t id) { return !isWithin(clock, order.clock(id)); });
    if (after != stream.end())
      problem.addRequirement(static_cast<size_t>(*(after - 1)), node);
  }
  problem.addRequirement(end, node);
  deaths.push_back({clock, node});
  return node;
}

MemoryPeak PeakFinder::find() {
  addOrder();
  struct Span {
    size_t birth, death;
  };
  std::vector<Span> spans(lives.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    if (!lives[i].isUsed())
      continue;
    spans[i] = {addBirth(lives[i]), addDeath(lives[i])};
    if (spans[i].birth != kAlways)
      problem.addWeight(spans[i].birth, lives[i].bytes);
    if (spans[i].death != kAlways)
      problem.addWeight(spans[i].death, -lives[i].bytes);
  }
  for (const Meeting &birth : births)
    for (const Meeting &death : deaths)
      if (isWithin(death.clock, birth.clock.data()))
        problem.addRequirement(birth.node, death.node);

  std::vector<bool> reached = problem.solve();
  MemoryPeak peak;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (!lives[i].isUsed())
      continue;
    bool isBorn = spans[i].birth == kAlways || reached[spans[i].birth];
    bool isDead = spans[i].death != kAlways && reached[spans[i].death];
    if (isBorn && !isDead)
      addAlive(peak, lives, i);
  }
  return peak;
}

/// Of commands of one stream. At moment 0 nothing has begun, at 1 the first command may start, at 1 + n, n commands are
/// complete, and at the last moment the step is over.
static MemoryPeak findOnOneStream(const std::vector<ScheduledCommand> &commands, const std::vector<BufferLife> &lives) {
  size_t end = commands.size() + 2;
  auto birthOf = [&](const BufferLife &life) -> size_t {
    if (life.fromBegin)
      return 0;
    return life.uses.empty() ? end : 1 + static_cast<size_t>(*std::min_element(life.uses.begin(), life.uses.end()));
  };
  auto deathOf = [&](const BufferLife &life) -> size_t {
    if (life.toEnd)
      return end + 1;
    return life.uses.empty() ? 1 : 2 + static_cast<size_t>(*std::max_element(life.uses.begin(), life.uses.end()));
  };
  std::vector<int64_t> change(end + 2);
  for (const BufferLife &life : lives)
    if (life.isUsed() && birthOf(life) < deathOf(life)) {
      change[birthOf(life)] += life.bytes;
      change[deathOf(life)] -= life.bytes;
    }
  size_t moment = 0;
  int64_t alive = change[0], most = alive;
  for (size_t at = 1; at <= end; ++at)
    if (alive += change[at]; alive > most) {
      most = alive;
      moment = at;
    }
  MemoryPeak peak;
  for (size_t i = 0; i < lives.size(); ++i)
    if (lives[i].isUsed() && birthOf(lives[i]) <= moment && moment < deathOf(lives[i]))
      addAlive(peak, lives, i);
  return peak;
}

MemoryPeak spmd::runtime::findMemoryPeak(const std::vector<ScheduledCommand> &commands, const HappensBefore &order,
                                         const std::vector<BufferLife> &lives) {
  if (std::all_of(commands.begin(), commands.end(),
                  [&](const ScheduledCommand &command) { return command.stream == commands.front().stream; }))
    return findOnOneStream(commands, lives);
  return PeakFinder(commands, order, lives).find();
}
