//===- PlanReport.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/PlanReport.h"
#include "spmd/Runtime/Core/MemoryPeak.h"

#include <algorithm>
#include <map>

using namespace spmd::runtime;

/// What placement makes of the bytes of a transient buffer.
static int64_t align(int64_t bytes) {
  return (bytes + kTransientAlignment - 1) / kTransientAlignment * kTransientAlignment;
}

/// Who uses each transient buffer. A batch is there from the beginning, an output until the end; one that shares no
/// byte is always there.
static std::vector<BufferLife> findLives(const Manifest &manifest, const Plan &plan) {
  std::vector<BufferLife> lives(plan.buffers.size());
  for (const Buffer &buffer : plan.buffers)
    if (!buffer.state)
      lives[static_cast<size_t>(buffer.id)].bytes = align(buffer.bytes);
  for (size_t id = 0; id < plan.commands.size(); ++id)
    for (const Ref &ref : plan.commands[id].refs)
      lives[static_cast<size_t>(ref.buffer)].uses.push_back(static_cast<int32_t>(id));
  auto mark = [&](const std::optional<int64_t> &buffer, bool BufferLife::*member) {
    if (buffer && *buffer >= 0 && *buffer < static_cast<int64_t>(lives.size()))
      lives[static_cast<size_t>(*buffer)].*member = true;
  };
  for (const BatchInput &input : manifest.batch)
    mark(input.buffer, &BufferLife::fromBegin);
  for (const HyperParameter &hyper : manifest.hyper)
    mark(hyper.buffer, &BufferLife::fromBegin);
  for (const Output &output : manifest.outputs)
    mark(output.buffer, &BufferLife::toEnd);
  auto isApart = [&](const Buffer &buffer) {
    return std::none_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer &other) {
      return other.id != buffer.id && other.offset < buffer.offset + buffer.bytes &&
             buffer.offset < other.offset + other.bytes;
    });
  };
  for (const Buffer &buffer : plan.buffers)
    if (BufferLife &life = lives[static_cast<size_t>(buffer.id)]; (life.fromBegin || life.toEnd) && isApart(buffer))
      life.fromBegin = life.toEnd = true;
  // State is always there, and no part of what placement shares out.
  for (const Buffer &buffer : plan.buffers)
    if (buffer.state)
      lives[static_cast<size_t>(buffer.id)] = {};
  return lives;
}

static void addMemory(const Manifest &manifest, const Plan &plan, PlanReport &report) {
  MemoryPeak peak = findMemoryPeak(getSchedule(plan), HappensBefore(plan), findLives(manifest, plan));
  report.peakBytes = peak.bytes;
  report.peakCommand = peak.command;
  if (peak.command >= 0) {
    const Command &command = plan.commands[static_cast<size_t>(peak.command)];
    report.peakDescription = command.describe();
    report.peakLocation = command.location;
  }
  std::map<std::string, PlanReport::MemoryClass> classes;
  for (const Buffer &buffer : plan.buffers) {
    PlanReport::MemoryClass &entry = classes[buffer.memoryClass];
    entry.name = buffer.memoryClass;
    if (buffer.state)
      entry.persistent += buffer.bytes;
  }
  for (size_t number : peak.alive) {
    const Buffer &buffer = plan.buffers[number];
    classes[buffer.memoryClass].peak += buffer.bytes;
    report.tensors.push_back({buffer.name, buffer.memoryClass, buffer.location, buffer.bytes, buffer.id});
  }
  std::sort(report.tensors.begin(), report.tensors.end(),
            [](const auto &a, const auto &b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer; });
  // In the order in which people ask for them.
  for (const char *name : {"parameters", "gradients", "optimizer state", "activations", "gathered", "io", "workspace"})
    if (auto found = classes.find(name); found != classes.end()) {
      report.classes.push_back(found->second);
      classes.erase(found);
    }
  for (const auto &[name, entry] : classes)
    report.classes.push_back(entry);
}

static void addCollective(std::vector<PlanReport::Collectives> &list, const Command &command,
                          const CollectiveCommand &collective) {
  auto entry = std::find_if(list.begin(), list.end(), [&](const auto &known) { return known.kind == collective.kind; });
  if (entry == list.end()) {
    list.push_back({collective.kind, 0, 0, 0, 0});
    entry = list.end() - 1;
  }
  int64_t largest = 0;
  for (const Ref &ref : command.refs)
    largest = std::max(largest, ref.bytes);
  ++entry->count;
  entry->values += static_cast<int64_t>(collective.counts.size());
  entry->sentBytes += command.sentBytes();
  entry->bytes += isInPlace(collective.kind) ? command.sentBytes() : largest;
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
    const auto *collective = command.as<CollectiveCommand>();
    if (!collective)
      continue;
    addCollective(report.collectives, command, *collective);
    if (auto row = rows.find(collective->unit); row != rows.end())
      addCollective(report.units[row->second].collectives, command, *collective);
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
  addMemory(manifest, plan, report);
  addUnits(manifest, plan, report);
  return report;
}
