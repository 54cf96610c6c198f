//===- PlanReport.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/PlanReport.h"

#include <algorithm>
#include <map>

using namespace spmd::runtime;

namespace {
/// The commands between which a buffer is alive, in program order; -1 and the
/// number of commands are the step's begin and end.
struct Life {
  int64_t first = INT64_MAX, last = -1;
  bool isUsed() const { return first <= last; }
  void extend(int64_t command) {
    first = std::min(first, command);
    last = std::max(last, command);
  }
};

/// What placement makes of the bytes of a transient buffer.
int64_t align(int64_t bytes) { return (bytes + kTransientAlignment - 1) / kTransientAlignment * kTransientAlignment; }
} // namespace

/// A batch is there from the beginning, an output until the end.
static std::vector<Life> findLives(const Manifest &manifest, const Plan &plan) {
  std::vector<Life> lives(plan.buffers.size());
  auto end = static_cast<int64_t>(plan.commands.size());
  for (int64_t id = 0; id < end; ++id)
    for (const Ref &ref : plan.commands[static_cast<size_t>(id)].refs)
      lives[static_cast<size_t>(ref.buffer)].extend(id);
  auto extend = [&](const std::optional<int64_t> &buffer, int64_t command) {
    if (buffer && *buffer < static_cast<int64_t>(lives.size()))
      lives[static_cast<size_t>(*buffer)].extend(command);
  };
  for (const BatchInput &input : manifest.batch)
    extend(input.buffer, -1);
  for (const HyperParameter &hyper : manifest.hyper)
    extend(hyper.buffer, -1);
  for (const Output &output : manifest.outputs)
    extend(output.buffer, end);
  return lives;
}

/// The first command with most transient bytes alive; -1 is before all.
static void findPeak(const Plan &plan, const std::vector<Life> &lives, PlanReport &report) {
  auto end = static_cast<int64_t>(plan.commands.size());
  std::vector<int64_t> change(static_cast<size_t>(end) + 3); // [command + 1]
  for (const Buffer &buffer : plan.buffers) {
    const Life &life = lives[static_cast<size_t>(buffer.id)];
    if (buffer.state || !life.isUsed())
      continue;
    change[static_cast<size_t>(life.first + 1)] += align(buffer.bytes);
    change[static_cast<size_t>(life.last + 2)] -= align(buffer.bytes);
  }
  int64_t alive = 0;
  for (int64_t id = -1; id <= end; ++id) {
    alive += change[static_cast<size_t>(id + 1)];
    if (alive > report.peakBytes) {
      report.peakBytes = alive;
      report.peakCommand = id;
    }
  }
  if (report.peakCommand < 0 || report.peakCommand >= end)
    return;
  const Command &command = plan.commands[static_cast<size_t>(report.peakCommand)];
  report.peakDescription = command.describe();
  report.peakLocation = command.location;
}

static void addMemory(const Plan &plan, const std::vector<Life> &lives, PlanReport &report) {
  std::map<std::string, PlanReport::MemoryClass> classes;
  for (const Buffer &buffer : plan.buffers) {
    const Life &life = lives[static_cast<size_t>(buffer.id)];
    PlanReport::MemoryClass &entry = classes[buffer.memoryClass];
    entry.name = buffer.memoryClass;
    if (buffer.state)
      entry.persistent += buffer.bytes;
    if (buffer.state || life.first > report.peakCommand || report.peakCommand > life.last)
      continue;
    entry.peak += buffer.bytes;
    report.tensors.push_back({buffer.name, buffer.memoryClass, buffer.location, buffer.bytes, buffer.id});
  }
  std::sort(report.tensors.begin(), report.tensors.end(),
            [](const auto &a, const auto &b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer; });
  // In the order in which people ask for them.
  for (const char *name : {"parameters", "gradients", "optimizer state", "activations", "gathered", "io"})
    if (auto found = classes.find(name); found != classes.end()) {
      report.classes.push_back(found->second);
      classes.erase(found);
    }
  for (const auto &[name, entry] : classes)
    report.classes.push_back(entry);
}

static void addCollective(std::vector<PlanReport::Collectives> &list, const Command &command) {
  auto entry = std::find_if(list.begin(), list.end(), [&](const auto &known) { return known.kind == command.kind; });
  if (entry == list.end()) {
    list.push_back({command.kind, 0, 0, 0, 0});
    entry = list.end() - 1;
  }
  int64_t largest = 0;
  for (const Ref &ref : command.refs)
    largest = std::max(largest, ref.bytes);
  ++entry->count;
  entry->values += static_cast<int64_t>(command.counts.size());
  entry->sentBytes += command.sentBytes();
  entry->bytes += command.kind == CommandKind::AllReduce ? command.sentBytes() : largest;
}

static void addUnits(const Manifest &manifest, const Plan &plan, PlanReport &report) {
  std::map<std::string, size_t> rows;
  for (const Unit &unit : manifest.units) {
    rows[unit.name] = report.units.size();
    PlanReport::UnitRow row;
    row.name = unit.name;
    row.modules = unit.modules;
    row.dtype = unit.dtype;
    row.padded = unit.padded;
    row.chunk = unit.chunk;
    row.parameters = static_cast<int64_t>(unit.segments.size());
    for (const Segment &segment : unit.segments)
      row.elements += segment.numel;
    report.units.push_back(std::move(row));
  }
  for (const Command &command : plan.commands) {
    if (!command.isCollective())
      continue;
    addCollective(report.collectives, command);
    if (auto row = rows.find(command.unit); row != rows.end())
      addCollective(report.units[row->second].collectives, command);
  }
  std::sort(report.collectives.begin(), report.collectives.end(),
            [](const auto &a, const auto &b) { return std::string(nameOf(a.kind)) < nameOf(b.kind); });
}

int64_t PlanReport::unusedBytes() const {
  int64_t used = 0;
  for (const MemoryClass &entry : classes)
    used += entry.persistent + entry.peak;
  return arenaBytes - used;
}

PlanReport spmd::runtime::makePlanReport(const Manifest &manifest, const Plan &plan) {
  PlanReport report;
  report.step = manifest.step;
  report.target = manifest.target;
  report.mode = manifest.mode;
  report.policy = manifest.policy;
  report.compiler = manifest.compiler;
  report.mesh = manifest.mesh;
  report.ranks = manifest.ranks;
  report.arenaBytes = manifest.arenaBytes;
  report.stateBytes = manifest.stateBytes;
  report.transientBytes = manifest.transientBytes;
  report.replicated = manifest.replicated;
  report.outsideArena = manifest.outsideArena;
  std::vector<Life> lives = findLives(manifest, plan);
  findPeak(plan, lives, report);
  addMemory(plan, lives, report);
  addUnits(manifest, plan, report);
  return report;
}
