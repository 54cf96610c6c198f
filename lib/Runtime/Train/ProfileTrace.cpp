//===- ProfileTrace.cpp - A profile as a Chrome trace ---------------------===//

#include "spmd/Runtime/Train/Profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace spmd::runtime;
using Json = nlohmann::ordered_json;

static Json describe(const Artifact &artifact, const Command &command, int64_t step, double nanoseconds) {
  Json about = {{"step", step}};
  if (!command.location.empty())
    about["where"] = command.location;
  if (command.is<WaitCommand>())
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

std::string Profile::formatEvents() const {
  Json events = Json::array();
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
                          {"cat", nameOf(command)},
                          {"pid", rank},
                          {"tid", stream},
                          {"ts", static_cast<double>(span.begin) * 1e-3},
                          {"dur", length * 1e-3},
                          {"args", describe(artifact, command, step, length)}});
      }
    }
  }
  return events.dump();
}

std::string spmd::runtime::joinTrace(const std::vector<std::string> &events, bool haveOneClock) {
  std::vector<Json> all;
  std::vector<double> begins;
  for (const std::string &text : events) {
    all.push_back(Json::parse(text));
    double begin = std::numeric_limits<double>::max();
    for (const Json &event : all.back())
      if (event.contains("ts"))
        begin = std::min(begin, event["ts"].get<double>());
    begins.push_back(begin);
  }
  double first = *std::min_element(begins.begin(), begins.end());
  Json joined = Json::array();
  for (size_t i = 0; i < all.size(); ++i)
    for (Json &event : all[i]) {
      if (event.contains("ts"))
        event["ts"] = std::round((event["ts"].get<double>() - (haveOneClock ? first : begins[i])) * 1e3) * 1e-3;
      joined.push_back(std::move(event));
    }
  return Json({{"displayTimeUnit", "ms"}, {"traceEvents", joined}}).dump(1) + "\n";
}
