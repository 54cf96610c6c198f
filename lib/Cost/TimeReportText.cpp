//===- TimeReportText.cpp -------------------------------------------------===//

#include "spmd/Cost/TimeReport.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cstdio>

using namespace spmd;
using namespace spmd::cost;
using runtime::formatCount;
using Rows = std::vector<std::vector<std::string>>;

static std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

static std::string milliseconds(double seconds) { return fixed(1e3 * seconds, 3); }
static std::string percent(double part, double whole) { return fixed(whole > 0 ? 100 * part / whole : 0, 1) + " %"; }

static std::string formatTotals(const TimeReport &report) {
  double contention = report.exposed() - report.idle;
  std::string text = "modelled step: " + milliseconds(report.seconds) + " ms\n";
  text += runtime::formatTable({
      {"kernels", milliseconds(report.kernels) + " ms", percent(report.kernels, report.seconds)},
      {"idle", milliseconds(report.idle) + " ms", percent(report.idle, report.seconds)},
      {"kernels slowed by collectives", milliseconds(contention) + " ms", percent(contention, report.seconds)},
      {"exposed (idle and slowed)", milliseconds(report.exposed()) + " ms", percent(report.exposed(), report.seconds)},
      {"longest chain of commands", milliseconds(report.criticalPath) + " ms",
       percent(report.criticalPath, report.seconds)},
  });
  text += "modelled MFU: " + fixed(100 * report.mfu(), 1) + " % = sum of FLOPs / peak of their dtype / step, of " +
          fixed(static_cast<double>(report.flops) * 1e-12, 3) + " TFLOP per rank\n" +
          "  FLOPs: 2 m n k of a GEMM, those of the visible pairs of an attention; recomputed products count\n";
  return text;
}

static std::string formatClasses(const TimeReport &report) {
  Rows rows = {{"class", "commands", "ms alone", "ms running", "GB", "TFLOP"}};
  for (const TimeReport::Class &row : report.classes)
    rows.push_back({row.name, formatCount(row.commands), milliseconds(row.alone), milliseconds(row.running),
                    fixed(static_cast<double>(row.bytes) * 1e-9, 3), fixed(static_cast<double>(row.flops) * 1e-12, 3)});
  return "modelled time by class:\n" + runtime::formatTable(rows);
}

static std::string formatStreams(const TimeReport &report) {
  Rows rows = {{"stream", "commands", "ms running", "ms waiting"}};
  for (const TimeReport::Stream &row : report.streams)
    rows.push_back({row.name, formatCount(row.commands), milliseconds(row.running), milliseconds(row.waiting)});
  return "modelled time by stream:\n" + runtime::formatTable(rows);
}

static std::string formatUnits(const TimeReport &report) {
  Rows rows = {{"unit", "collectives", "GB", "ms running", "ms of stalls"}};
  std::string first; // of a run of units with equal numbers, which are one line
  for (const TimeReport::Unit &unit : report.units) {
    std::vector<std::string> row = {unit.name, formatCount(unit.collectives),
                                    fixed(static_cast<double>(unit.bytes) * 1e-9, 3), milliseconds(unit.running),
                                    milliseconds(unit.stalls)};
    bool isSame = rows.size() > 1 && std::equal(row.begin() + 1, row.end(), rows.back().begin() + 1);
    first = isSame ? first : unit.name;
    if (isSame)
      rows.back()[0] = first + " to " + unit.name;
    else
      rows.push_back(std::move(row));
  }
  if (rows.size() == 1)
    return "";
  return "modelled time of collectives by unit:\n" + runtime::formatTable(rows);
}

static std::string formatStalls(const TimeReport &report) {
  if (report.stalls.empty())
    return "modelled stalls of the compute stream of 0.1 ms and more: none\n";
  std::string text = "modelled stalls of the compute stream of 0.1 ms and more:\n";
  for (const TimeReport::Stall &stall : report.stalls) {
    text += "  " + milliseconds(stall.seconds) + " ms at " + milliseconds(stall.begin) + " ms: " + stall.cause +
            (stall.place.empty() ? "" : ", " + stall.place) + "\n";
    text += "    " + stall.remedy + "; the step is " + milliseconds(stall.gain) +
            " ms shorter if the awaited command takes no time\n";
  }
  return text;
}

std::string spmd::cost::formatTimeReport(const TimeReport &report) {
  std::string text = report.step + ": target " + report.target + ", " + std::to_string(report.ranks) + " ranks\n";
  text += "all times are modelled, not measured: machine " + report.machine + ", network " + report.network + "\n\n";
  text += formatTotals(report) + "\n" + formatClasses(report) + "\n" + formatStreams(report) + "\n";
  if (std::string units = formatUnits(report); !units.empty())
    text += units + "\n";
  return text + formatStalls(report);
}
