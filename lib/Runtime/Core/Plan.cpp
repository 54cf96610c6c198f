//===- Plan.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Core/Plan.h"

using namespace spmd::runtime;

const std::vector<std::string> &Plan::axesOf(int32_t communicator) const {
  static const std::vector<std::string> none;
  auto found = axes.find(communicators[static_cast<size_t>(communicator)]);
  return found == axes.end() ? none : found->second;
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
