//===- IdleWaits.cpp ------------------------------------------------------===//
//
// [Note: needs] What must be complete when a command starts is a number for each
// stream, as a vector clock is: the commands of that stream up to the last one
// which touches what this one does. A wait is idle when all clocks reach their
// needs without it. Needs are read off the order that the plan has, so that
// leaving out waits never turns an order around.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/IdleWaits.h"
#include "spmd/Runtime/Core/HappensBefore.h"

#include <algorithm>
#include <optional>
#include <utility>

using namespace spmd::runtime;

namespace {

class OrderNeeds {
public:
  OrderNeeds(const Manifest &manifest, const Plan &plan)
      : manifest(manifest), plan(plan), order(plan), streams(plan.streams.size()),
        needs(plan.commands.size() * streams), accesses(plan.buffers.size()) {
    for (size_t id = 0; id < plan.commands.size(); ++id)
      for (const Ref &ref : plan.commands[id].refs)
        if (ref.bytes > 0)
          accesses[static_cast<size_t>(ref.buffer)].push_back({static_cast<int32_t>(id), &ref});
    for (size_t buffer = 0; buffer < accesses.size(); ++buffer)
      addConflicts(accesses[buffer]);
    addSharedBytes();
  }

  bool areMetBy(const HappensBefore &other) const {
    for (size_t id = 0; id < plan.commands.size(); ++id)
      for (size_t stream = 0; stream < streams; ++stream)
        if (other.clock(static_cast<int32_t>(id))[stream] < needs[id * streams + stream])
          return false;
    return true;
  }

private:
  struct Access {
    int32_t command;
    const Ref *ref;
  };

  int32_t streamOf(const Access &access) const { return plan.commands[static_cast<size_t>(access.command)].stream; }

  /// The stream that all accesses are on, which orders them by itself.
  std::optional<int32_t> onlyStreamOf(const std::vector<Access> &all) const {
    bool isOne = std::all_of(all.begin(), all.end(),
                             [&](const Access &access) { return streamOf(access) == streamOf(all.front()); });
    return isOne ? std::optional(streamOf(all.front())) : std::nullopt;
  }

  void add(int32_t first, int32_t second) {
    auto stream = static_cast<size_t>(plan.commands[static_cast<size_t>(first)].stream);
    uint32_t &need = needs[static_cast<size_t>(second) * streams + stream];
    need = std::max(need, order.position(first) + 1);
  }

  /// A check of integers must be over before they are used; all else conflicts where one writes.
  bool mustBeOrdered(const Access &first, const Access &second) const {
    return first.ref->writes() || second.ref->writes() ||
           plan.commands[static_cast<size_t>(first.command)].is<CheckIndexCommand>();
  }

  bool overlapOnSomeRank(const Ref &a, const Ref &b) const {
    int64_t ranks = a.dependsOnRank() || b.dependsOnRank() ? manifest.ranks : 1;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t> at = manifest.coordinatesOf(rank);
      if (a.offsetAt(at) < b.offsetAt(at) + b.bytes && b.offsetAt(at) < a.offsetAt(at) + a.bytes)
        return true;
    }
    return false;
  }

  /// Accesses to one buffer: rules 5, 6 and 8 of the certificate.
  void addConflicts(const std::vector<Access> &all) {
    for (size_t j = 0; j < all.size(); ++j)
      for (size_t i = 0; i < j; ++i)
        if (streamOf(all[i]) != streamOf(all[j]) && order.ordered(all[i].command, all[j].command) &&
            mustBeOrdered(all[i], all[j]) && overlapOnSomeRank(*all[i].ref, *all[j].ref))
          add(all[i].command, all[j].command);
  }

  bool wholeLifeBefore(const std::vector<Access> &a, const std::vector<Access> &b) const {
    return std::all_of(a.begin(), a.end(), [&](const Access &first) {
      return std::all_of(b.begin(), b.end(),
                         [&](const Access &second) { return order.ordered(first.command, second.command); });
    });
  }

  /// Buffers that share bytes of the arena: rule 4.
  void addSharedBytes() {
    std::vector<size_t> byOffset;
    std::vector<std::optional<int32_t>> onlyStream(accesses.size());
    for (size_t i = 0; i < accesses.size(); ++i)
      if (plan.buffers[i].bytes > 0 && !accesses[i].empty()) {
        byOffset.push_back(i);
        onlyStream[i] = onlyStreamOf(accesses[i]);
      }
    std::sort(byOffset.begin(), byOffset.end(), [&](size_t a, size_t b) {
      return std::pair(plan.buffers[a].offset, a) < std::pair(plan.buffers[b].offset, b);
    });
    for (size_t i = 0; i < byOffset.size(); ++i) {
      const Buffer &lower = plan.buffers[byOffset[i]];
      for (size_t j = i + 1; j < byOffset.size() && plan.buffers[byOffset[j]].offset < lower.offset + lower.bytes; ++j)
        for (auto [first, second] : {std::pair(byOffset[i], byOffset[j]), std::pair(byOffset[j], byOffset[i])})
          if ((!onlyStream[first] || onlyStream[first] != onlyStream[second]) &&
              wholeLifeBefore(accesses[first], accesses[second]))
            for (const Access &a : accesses[first])
              for (const Access &b : accesses[second])
                add(a.command, b.command);
    }
  }

  const Manifest &manifest;
  const Plan &plan;
  HappensBefore order;
  size_t streams;
  std::vector<uint32_t> needs;               ///< per command and stream: how many of its commands must be complete
  std::vector<std::vector<Access>> accesses; ///< per buffer, in the order of the plan
};

} // namespace

std::vector<int32_t> spmd::runtime::findIdleWaits(const Manifest &manifest, const Plan &plan) {
  std::vector<ScheduledCommand> schedule = getSchedule(plan);
  if (std::none_of(schedule.begin(), schedule.end(), [](const ScheduledCommand &each) { return each.awaited >= 0; }))
    return {};
  OrderNeeds needs(manifest, plan);
  std::vector<int32_t> idle;
  for (size_t id = 0; id < schedule.size(); ++id) {
    int32_t awaited = std::exchange(schedule[id].awaited, -1);
    if (awaited < 0)
      continue;
    if (needs.areMetBy(HappensBefore(schedule, plan.streams.size())))
      idle.push_back(static_cast<int32_t>(id));
    else
      schedule[id].awaited = awaited;
  }
  return idle;
}
