//===- PlanReportText.cpp - A plan report as tables and as JSON -----------===//

#include "spmd/Runtime/Core/PlanReport.h"
#include "spmd/Runtime/Core/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace spmd::runtime;
using Rows = std::vector<std::vector<std::string>>;
using Json = nlohmann::ordered_json;

/// Rows of text of one kind are equal parts of a model; more are not readable.
static constexpr size_t kMostRows = 40;

/// "train.py:12" of "h.0.attn, train.py:12".
static std::string lineOf(const std::string &location) {
  size_t comma = location.rfind(", ");
  return comma == std::string::npos ? location : location.substr(comma + 2);
}

static std::string formatModules(const std::vector<std::string> &modules) {
  std::string text;
  for (const std::string &module : modules)
    text += (text.empty() ? "" : " ") + (module.empty() ? std::string("(root)") : module);
  return text;
}

static const PlanReport::Collectives *find(const std::vector<PlanReport::Collectives> &list, CollectiveKind kind) {
  auto found = std::find_if(list.begin(), list.end(), [&](const auto &entry) { return entry.kind == kind; });
  return found == list.end() ? nullptr : &*found;
}

std::string spmd::runtime::formatArena(const PlanReport &report) {
  std::string text = "arena: " + formatCount(report.arenaBytes) + " bytes per rank\n";
  Rows rows = {{"", "persistent", "transient, at the peak", "together"}};
  int64_t peak = 0, persistent = 0;
  for (const PlanReport::MemoryClass &entry : report.classes) {
    rows.push_back({entry.name, formatCount(entry.persistent), formatCount(entry.peak),
                    formatCount(entry.persistent + entry.peak)});
    persistent += entry.persistent;
    peak += entry.peak;
  }
  int64_t padding = report.stateBytes - persistent, gaps = report.transientBytes - peak;
  rows.push_back({"alignment and gaps", formatCount(padding), formatCount(gaps), formatCount(padding + gaps)});
  rows.push_back(
      {"arena", formatCount(report.stateBytes), formatCount(report.transientBytes), formatCount(report.arenaBytes)});
  return text + formatTable(rows);
}

std::string spmd::runtime::formatPeak(const PlanReport &report) {
  if (report.tensors.empty())
    return "";
  std::string text = "memory peak: " + formatCount(report.peakBytes) + " transient bytes alive";
  if (!report.peakDescription.empty())
    text += " at command " + std::to_string(report.peakCommand) + " (" + report.peakDescription + ")" +
            (report.peakLocation.empty() ? "" : ", " + report.peakLocation);
  struct Group {
    const PlanReport::Tensor *first;
    int64_t count, bytes;
  };
  std::vector<Group> groups;
  std::map<std::vector<std::string>, size_t> numbers;
  for (const PlanReport::Tensor &tensor : report.tensors) {
    std::vector<std::string> key = {formatPattern(tensor.name), tensor.memoryClass, formatPattern(tensor.location),
                                    std::to_string(tensor.bytes)};
    auto [number, isNew] = numbers.try_emplace(key, groups.size());
    if (isNew)
      groups.push_back({&tensor, 0, 0});
    ++groups[number->second].count;
    groups[number->second].bytes += tensor.bytes;
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group &a, const Group &b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first; });
  Rows rows = {{"tensor", "class", "bytes", "of them", "together", "line"}};
  int64_t rest = 0, restBytes = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group &group = groups[i];
    if (i >= kMostRows) {
      rest += group.count;
      restBytes += group.bytes;
      continue;
    }
    rows.push_back({group.count > 1 ? formatPattern(group.first->name) : group.first->name, group.first->memoryClass,
                    formatCount(group.first->bytes), formatCount(group.count), formatCount(group.bytes),
                    lineOf(group.first->location)});
  }
  text += "\n" + formatTable(rows);
  if (rest > 0)
    text += "  and " + formatCount(rest) + " smaller ones, " + formatCount(restBytes) + " bytes\n";
  return text;
}

/// "2 x 218,112,000": how many collectives of how many bytes.
static std::string formatCounts(const PlanReport::Collectives *entry) {
  if (!entry)
    return "-";
  return std::to_string(entry->count) + " x " + formatCount(entry->bytes / entry->count);
}

std::string spmd::runtime::formatUnits(const PlanReport &report) {
  Rows rows = {{"unit", "modules", "parameters", "elements", "elements per rank", "all_gather", "reduce_scatter"}};
  std::vector<std::string> last;
  for (const PlanReport::UnitRow &unit : report.units) {
    std::vector<std::string> row = {unit.name,
                                    formatModules(unit.modules),
                                    formatCount(unit.parameters),
                                    formatCount(unit.elements),
                                    formatCount(unit.chunk),
                                    formatCounts(find(unit.collectives, CollectiveKind::AllGather)),
                                    formatCounts(find(unit.collectives, CollectiveKind::ReduceScatter))};
    if (const auto *reduced = find(unit.collectives, CollectiveKind::AllReduce))
      row.back() = "all_reduce " + formatCounts(reduced);
    std::vector<std::string> key(row.begin() + 2, row.end());
    key.push_back(formatPattern(row[1] + " "));
    if (key == last) {
      // Units that differ in their number only.
      auto extend = [&](size_t column, const std::string &end) {
        std::string &text = rows.back()[column];
        text = text.substr(0, text.find(" to ")) + " to " + end;
      };
      extend(0, row[0]);
      extend(1, row[1]);
    } else {
      rows.push_back(row);
      last = key;
    }
  }
  return "shard units:\n" + formatTable(rows);
}

std::string spmd::runtime::formatCollectives(const PlanReport &report) {
  Rows rows;
  for (const PlanReport::Collectives &entry : report.collectives) {
    rows.push_back({nameOf(entry.kind), formatCount(entry.count), formatCount(entry.sentBytes) + " bytes"});
    if (entry.values > entry.count)
      rows.back().push_back("for " + formatCount(entry.values) + " values");
  }
  return std::string("collectives per step, bytes each rank contributes:") + (rows.empty() ? " none" : "") + "\n" +
         formatTable(rows);
}

std::string spmd::runtime::formatReplicated(const PlanReport &report) {
  if (report.replicated.empty())
    return "";
  std::map<std::vector<std::string>, std::pair<int64_t, int64_t>> groups;
  int64_t total = 0;
  for (const ReplicatedValue &value : report.replicated) {
    auto &[count, bytes] = groups[{formatPattern(value.location), value.op, std::to_string(value.bytes)}];
    ++count;
    bytes += value.bytes;
    total += value.bytes;
  }
  std::vector<std::pair<int64_t, std::vector<std::string>>> lines;
  for (const auto &[key, group] : groups)
    lines.push_back(
        {-group.second,
         {key[1], formatCount(std::stoll(key[2])), formatCount(group.first), formatCount(group.second), key[0]}});
  std::sort(lines.begin(), lines.end());
  Rows rows = {{"op", "bytes", "of them", "together", "where"}};
  for (size_t i = 0; i < std::min(lines.size(), kMostRows); ++i)
    rows.push_back(lines[i].second);
  std::string text = "values that every rank computes whole, no memory where they are fused into their readers: " +
                     formatCount(total) + " bytes\n" + formatTable(rows);
  if (lines.size() > kMostRows)
    text += "  and " + std::to_string(lines.size() - kMostRows) + " kinds of smaller ones\n";
  return text;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json collectivesJson(const std::vector<PlanReport::Collectives> &list) {
  Json array = Json::array();
  for (const PlanReport::Collectives &entry : list)
    array.push_back({{"op", nameOf(entry.kind)},
                     {"count", entry.count},
                     {"values", entry.values},
                     {"sent_bytes", entry.sentBytes},
                     {"bytes", entry.bytes}});
  return array;
}

std::string spmd::runtime::planReportJson(const PlanReport &report) {
  Json classes = Json::object(), mesh = Json::array(), tensors = Json::array(), units = Json::array(),
       replicated = Json::array(), outside = Json::array();
  for (const MeshAxis &axis : report.mesh)
    mesh.push_back({{"name", axis.name}, {"size", axis.size}});
  for (const PlanReport::MemoryClass &entry : report.classes)
    classes[entry.name] = {{"persistent", entry.persistent}, {"peak", entry.peak}};
  for (const PlanReport::Tensor &tensor : report.tensors)
    tensors.push_back(
        {{"name", tensor.name}, {"class", tensor.memoryClass}, {"bytes", tensor.bytes}, {"loc", tensor.location}});
  for (const PlanReport::UnitRow &unit : report.units)
    units.push_back({{"name", unit.name},
                     {"modules", unit.modules},
                     {"dtype", nameOf(unit.dtype)},
                     {"parameters", unit.parameters},
                     {"elements", unit.elements},
                     {"padded", unit.padded},
                     {"chunk", unit.chunk},
                     {"collectives", collectivesJson(unit.collectives)}});
  for (const ReplicatedValue &value : report.replicated)
    replicated.push_back({{"op", value.op}, {"bytes", value.bytes}, {"loc", value.location}});
  for (const OutsideArena &entry : report.outsideArena)
    outside.push_back({{"name", entry.name}, {"bytes", entry.bytes ? Json(*entry.bytes) : Json()}});
  Json json = {{"format", "spmd-plan-report"},
               {"version", 1},
               {"step", report.step},
               {"target", report.target},
               {"mode", report.mode},
               {"policy", report.policy},
               {"mesh", mesh},
               {"ranks", report.ranks},
               {"arena",
                {{"bytes", report.arenaBytes},
                 {"state_bytes", report.stateBytes},
                 {"transient_bytes", report.transientBytes},
                 {"classes", classes},
                 {"unused_bytes", report.unusedBytes()}}},
               {"peak",
                {{"bytes", report.peakBytes},
                 {"command", report.peakCommand},
                 {"op", report.peakDescription},
                 {"loc", report.peakLocation},
                 {"tensors", tensors}}},
               {"units", units},
               {"collectives", collectivesJson(report.collectives)},
               {"replicated", replicated},
               {"outside_arena", outside}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}
