//===- TimeReportJson.cpp -------------------------------------------------===//

#include "spmd/Cost/TimeReport.h"
#include "spmd/Runtime/Core/Json.h"

#include <charconv>

using namespace spmd;
using namespace spmd::cost;

namespace {

/// An object whose members are on one line; `text` is what it has so far.
class Members {
public:
  Members &add(const char *key, const std::string &value) { return append(key, runtime::quoteJson(value)); }
  Members &add(const char *key, int64_t value) { return append(key, std::to_string(value)); }
  /// The shortest text that gives the number back.
  Members &add(const char *key, double value) {
    char digits[32];
    return append(key, std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr));
  }
  Members &append(const char *key, const std::string &json) {
    text += std::string(text.empty() ? "" : ", ") + "\"" + key + "\": " + json;
    return *this;
  }

  std::string text;
};

} // namespace

/// A list with an object on each line.
template <typename Range, typename Describe>
static std::string list(const char *key, const Range &rows, Describe describe) {
  std::string text;
  for (const auto &row : rows) {
    Members members;
    describe(members, row);
    text += std::string(text.empty() ? "\n" : ",\n") + "  {" + members.text + "}";
  }
  return std::string("\"") + key + "\": [" + text + "\n]";
}

std::string spmd::cost::timeReportJson(const TimeReport &report) {
  Members totals;
  totals.add("step_ms", 1e3 * report.seconds)
      .add("kernels_ms", 1e3 * report.kernels)
      .add("idle_ms", 1e3 * report.idle)
      .add("exposed_ms", 1e3 * report.exposed())
      .add("critical_path_ms", 1e3 * report.criticalPath)
      .add("flops", report.flops)
      .add("mfu", report.mfu());
  Members header;
  header.add("step", report.step)
      .add("target", report.target)
      .add("ranks", report.ranks)
      .add("machine", report.machine)
      .add("network", report.network)
      .append("modelled", "true");
  std::string text = "{\n\"format\": \"spmd-time\", \"version\": 1, " + header.text + ",\n" + totals.text + ",\n";
  text += list("classes", report.classes,
               [](Members &members, const TimeReport::Class &row) {
                 members.add("class", row.name)
                     .add("commands", row.commands)
                     .add("alone_ms", 1e3 * row.alone)
                     .add("running_ms", 1e3 * row.running)
                     .add("bytes", row.bytes)
                     .add("flops", row.flops);
               }) +
          ",\n";
  text += list("streams", report.streams,
               [](Members &members, const TimeReport::Stream &row) {
                 members.add("stream", row.name)
                     .add("commands", row.commands)
                     .add("running_ms", 1e3 * row.running)
                     .add("waiting_ms", 1e3 * row.waiting);
               }) +
          ",\n";
  text += list("units", report.units,
               [](Members &members, const TimeReport::Unit &row) {
                 members.add("unit", row.name)
                     .add("collectives", row.collectives)
                     .add("bytes", row.bytes)
                     .add("running_ms", 1e3 * row.running)
                     .add("stalls_ms", 1e3 * row.stalls);
               }) +
          ",\n";
  text += list("stalls", report.stalls, [](Members &members, const TimeReport::Stall &row) {
    members.add("begin_ms", 1e3 * row.begin)
        .add("stall_ms", 1e3 * row.seconds)
        .add("gain_ms", 1e3 * row.gain)
        .add("wait", row.wait)
        .add("awaited", row.awaited)
        .add("place", row.place)
        .add("cause", row.cause)
        .add("remedy", row.remedy);
  });
  return text + "\n}\n";
}
