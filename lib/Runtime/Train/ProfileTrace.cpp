//===- ProfileTrace.cpp - A profile as a Chrome trace ---------------------===//

#include "spmd/Runtime/Train/Profile.h"

#include <nlohmann/json.hpp>

using namespace spmd::runtime;
using Json = nlohmann::ordered_json;

static Json describe(const Artifact &artifact, const Command &command, int64_t step, double nanoseconds) {
  Json about = {{"step", step}};
  if (!command.location.empty())
    about["where"] = command.location;
  if (command.kind == CommandKind::Wait)
    return about;
  int64_t bytes = bytesOf(artifact, command);
  about["bytes"] = bytes;
  if (nanoseconds > 0) {
    about["GB/s"] = static_cast<double>(bytes) / nanoseconds;
    if (double flops = flopsOf(command))
      about["GFLOP/s"] = flops / nanoseconds;
  }
  return about;
}

std::string Profile::formatTrace() const {
  Json events = Json::array();
  int64_t first = INT64_MAX;
  for (const std::vector<Span> &track : tracks)
    if (!track.empty())
      first = std::min(first, track.front().begin);
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank) {
    events.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", "rank " + std::to_string(rank)}}}});
    for (int64_t stream = 0; stream < streams; ++stream) {
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", rank},
                        {"tid", stream},
                        {"args", {{"name", artifact.plan.streams[static_cast<size_t>(stream)]}}}});
      const std::vector<Span> &all = spans(rank, stream);
      for (size_t i = 0; i < all.size(); ++i) {
        const Span &span = all[i];
        const Command &command = artifact.plan.commands[static_cast<size_t>(span.command)];
        auto length = static_cast<double>(span.end - span.begin);
        auto step = static_cast<int64_t>(i / commandsOf[static_cast<size_t>(stream)]);
        // Times are in microseconds.
        events.push_back({{"ph", "X"},
                          {"name", command.describe()},
                          {"cat", nameOf(command.kind)},
                          {"pid", rank},
                          {"tid", stream},
                          {"ts", static_cast<double>(span.begin - first) * 1e-3},
                          {"dur", length * 1e-3},
                          {"args", describe(artifact, command, step, length)}});
      }
    }
  }
  return Json({{"displayTimeUnit", "ms"}, {"traceEvents", events}}).dump(1) + "\n";
}
