//===- CertificateInFlight.cpp --------------------------------------------===//
//
// [Note: in flight] A collective on a GPU holds thread blocks until all ranks have come to it. All ranks issue the same
// commands in the same order (rule 3), and of all that are not done the first in this order waits for nothing but room
// on the device. It has room when those that may run before it, each of at most a share of the multiprocessors
// (communicators are made with that limit), cannot fill the device; kernels that compute end. So no rank can hold what
// another one needs for a collective that the first has not begun. What can run together are collectives of streams
// that do not take turns: two streams take turns when each collective of one is ordered with each of the other.
//
//===----------------------------------------------------------------------===//

#include "CertificateInFlight.h"
#include "CertificateMemory.h"
#include "spmd/Runtime/Core/Collective.h"

#include <algorithm>

using namespace spmd::runtime;

/// Whether each of the collectives `a` is ordered with each of `b`, both in the order of their streams.
static bool takeTurns(const std::vector<int32_t> &a, const std::vector<int32_t> &b, const HappensBefore &order) {
  size_t next = 0;
  for (int32_t one : a) {
    // Those of the other stream that are not over when it begins must begin when it is over: the first of them.
    while (next < b.size() && order.ordered(b[next], one))
      ++next;
    if (next < b.size() && !order.ordered(one, b[next]))
      return false;
  }
  return true;
}

Status spmd::runtime::checkInFlight(const Plan &plan, const HappensBefore &order) {
  std::vector<std::vector<int32_t>> collectives(plan.streams.size());
  for (size_t id = 0; id < plan.commands.size(); ++id)
    if (plan.commands[id].is<CollectiveCommand>())
      collectives[static_cast<size_t>(plan.commands[id].stream)].push_back(static_cast<int32_t>(id));
  // Streams that all take turns with one another count as one.
  std::vector<std::vector<size_t>> lanes;
  for (size_t stream = 0; stream < collectives.size(); ++stream) {
    if (collectives[stream].empty())
      continue;
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const std::vector<size_t> &others) {
      return std::all_of(others.begin(), others.end(),
                         [&](size_t other) { return takeTurns(collectives[other], collectives[stream], order); });
    });
    if (lane != lanes.end()) {
      lane->push_back(stream);
      continue;
    }
    lanes.push_back({stream});
    if (lanes.size() <= static_cast<size_t>(kMostInFlight))
      continue;
    std::string names;
    for (const std::vector<size_t> &others : lanes)
      names += (names.empty() ? "'" : ", '") + plan.streams[others.front()] + "'";
    return certificateError(plan, collectives[stream].front(), 11,
                            "collectives of streams " + names + " may be in flight together; more than " +
                                std::to_string(kMostInFlight) +
                                " of them can fill a GPU and keep out what another rank waits for");
  }
  return Status::success();
}
