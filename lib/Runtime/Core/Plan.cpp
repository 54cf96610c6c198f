//===- Plan.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Core/Plan.h"

using namespace spmd::runtime;

const std::vector<std::string> &Plan::axesOf(int32_t communicator) const {
  static const std::vector<std::string> none;
  auto found = axes.find(communicators[static_cast<size_t>(communicator)]);
  return found == axes.end() ? none : found->second;
}

static int64_t findOrZero(const std::map<std::string, int64_t> &values, const std::string &name) {
  auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

int64_t Plan::priorityOf(size_t stream) const { return findOrZero(priorities, streams[stream]); }

int64_t Plan::maxBlocksOf(int32_t communicator) const {
  return findOrZero(maxBlocks, communicators[static_cast<size_t>(communicator)]);
}

std::string spmd::runtime::collectiveTrace(const Plan &plan) {
  std::string trace;
  for (const auto &[name, axes] : plan.axes) {
    trace += name;
    for (const std::string &axis : axes)
      trace += (&axis == &axes.front() ? " " : ",") + axis;
    trace += "\n";
  }
  for (const Command &command : plan.commands) {
    const auto *collective = command.as<CollectiveCommand>();
    if (!collective)
      continue;
    std::string counts, kinds;
    for (int64_t count : collective->counts)
      counts += (counts.empty() ? "" : ",") + std::to_string(count);
    for (ReductionKind kind : collective->kinds)
      kinds += (kinds.empty() ? "" : ",") + std::string(nameOf(kind));
    auto orDash = [](const std::string &text) { return text.empty() ? std::string("-") : text; };
    trace += plan.communicators[static_cast<size_t>(collective->communicator)] + " " + nameOf(collective->kind) + " " +
             nameOf(collective->dtype) + " " + orDash(counts) + " " + orDash(kinds) + " " + orDash(collective->unit) +
             "\n";
  }
  return trace;
}
