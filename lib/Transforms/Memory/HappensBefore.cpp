//===- HappensBefore.cpp - Order of commands over streams and waits -------===//

#include "spmd/Transforms/Memory/HappensBefore.h"
#include <algorithm>

using namespace spmd::memory;

HappensBefore::HappensBefore(llvm::ArrayRef<StreamCommand> list, unsigned numStreams)
    : commands(list.begin(), list.end()), numStreams(numStreams), clocks(list.size() * numStreams, -1),
      ofStream(numStreams) {
  // [Note: clocks] A vector clock per command: before(c) is what is complete when c starts, which is what was complete
  // when the previous command of its stream completed. That one adds itself, and, if it was a wait, all that was
  // complete when the awaited command completed. A stream's prefix is complete when its last command is, so one number
  // per stream is all.
  std::vector<int64_t> now(numStreams * numStreams, -1); // after the latest command of each stream
  std::vector<int64_t> after(clocks.size(), -1);
  for (int64_t c = 0, e = commands.size(); c != e; ++c) {
    ofStream[commands[c].stream].push_back(c);
    int64_t *current = &now[commands[c].stream * numStreams];
    std::copy_n(current, numStreams, &clocks[c * numStreams]);
    current[commands[c].stream] = c;
    if (int64_t awaited = commands[c].awaited; awaited >= 0)
      for (unsigned s = 0; s != numStreams; ++s)
        current[s] = std::max(current[s], after[awaited * numStreams + s]);
    std::copy_n(current, numStreams, &after[c * numStreams]);
  }
}

void Uses::add(unsigned stream, int64_t command) {
  if (first[stream] < 0 || command < first[stream])
    first[stream] = command;
  last[stream] = std::max(last[stream], command);
}

int64_t Uses::firstUse() const {
  int64_t result = -1;
  for (int64_t use : first)
    if (use >= 0 && (result < 0 || use < result))
      result = use;
  return result;
}

int64_t Uses::lastUse() const { return *std::max_element(last.begin(), last.end()); }

bool Uses::precede(int64_t command, const HappensBefore &order) const {
  return std::all_of(last.begin(), last.end(), [&](int64_t use) { return use < 0 || order.precedes(use, command); });
}

int64_t Uses::findPast(unsigned stream, const HappensBefore &order) const {
  llvm::ArrayRef<int64_t> commands = order.getCommands(stream); // what is complete grows along a stream
  const int64_t *past =
      std::partition_point(commands.begin(), commands.end(), [&](int64_t c) { return !precede(c, order); });
  return past == commands.begin() ? 0 : *std::prev(past) + 1;
}

bool Uses::precede(const Uses &other, const HappensBefore &order) const {
  return std::all_of(other.first.begin(), other.first.end(),
                     [&](int64_t use) { return use < 0 || precede(use, order); });
}
