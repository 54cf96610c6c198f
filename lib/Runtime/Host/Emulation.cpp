//===- Emulation.cpp ------------------------------------------------------===//

#include "spmd/Runtime/Host/Emulation.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

using namespace spmd::runtime;

std::optional<Emulation> Emulation::find(void *library) {
  Emulation emulation;
  auto look = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  if (!look(emulation.set, "spmd_emulation_configure") || !look(emulation.getError, "spmd_emulation_error") ||
      !look(emulation.getFailedArguments, "spmd_emulation_failed_arguments") ||
      !look(emulation.getCounts, "spmd_emulation_counts"))
    return std::nullopt;
  return emulation;
}

Status Emulation::configure(const std::string &text) {
  static const char *const strengths[] = {"plain", "checked"};
  static const char *const schedules[] = {"forward", "reverse", "random", "warp-greedy"};
  auto refuse = [&](const std::string &what) {
    return Status::badInput("emulation '" + text + "': " + what +
                            "; expected STRENGTH[,SCHEDULE[,SEED]] with plain or checked; forward, reverse, random or "
                            "warp-greedy; and a number");
  };
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  auto position = [](const auto &names, const std::string &name) {
    return std::find(std::begin(names), std::end(names), name) - std::begin(names);
  };
  int64_t strength = parts.empty() ? 1 : position(strengths, parts[0]);
  int64_t schedule = parts.size() < 2 ? 0 : position(schedules, parts[1]);
  if (strength == std::end(strengths) - std::begin(strengths))
    return refuse("no strength is '" + parts[0] + "'");
  if (schedule == std::end(schedules) - std::begin(schedules))
    return refuse("no schedule is '" + parts[1] + "'");
  uint64_t seed = 0;
  if (parts.size() > 2) {
    char *end = nullptr;
    seed = std::strtoull(parts[2].c_str(), &end, 10);
    if (parts[2].empty() || *end != 0 || parts[2][0] == '-' || parts.size() > 3)
      return refuse("'" + parts[2] + "' is no seed");
  }
  checked = strength == 1;
  set(checked, static_cast<int32_t>(schedule), seed);
  return Status::success();
}

SpmdEmulationCounts Emulation::counts() const {
  SpmdEmulationCounts counts;
  getCounts(&counts);
  return counts;
}
