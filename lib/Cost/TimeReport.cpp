//===- TimeReport.cpp -----------------------------------------------------===//

#include "spmd/Cost/TimeReport.h"

#include <algorithm>

using namespace spmd;
using namespace spmd::cost;
using namespace spmd::runtime;

namespace {

class Reporter {
public:
  Reporter(const Plan &plan, const Machine &machine, const CommandList &commands, const Prices &prices)
      : plan(plan), machine(machine), commands(commands), prices(prices), simulation(simulate(commands, prices)),
        compute(computeStream(commands, prices)) {}

  void addTotals(TimeReport &report) const;
  void addClasses(TimeReport &report) const;
  void addStreams(TimeReport &report) const;
  void addUnits(TimeReport &report) const;
  void addStalls(TimeReport &report) const;

private:
  double runningOf(size_t command) const { return simulation.end[command] - simulation.start[command]; }
  bool isWait(size_t command) const { return commands.kind[command] == CommandKind::Wait; }
  /// "command 12, all_gather of unit0".
  std::string describe(int32_t command) const;
  std::string findCause(const Stall &stall) const;
  std::string findRemedy(const Stall &stall) const;

  const Plan &plan;
  const Machine &machine;
  const CommandList &commands;
  const Prices &prices;
  Simulation simulation;
  int32_t compute;
};

} // namespace

void Reporter::addTotals(TimeReport &report) const {
  report.seconds = simulation.step;
  report.criticalPath = criticalPath(commands, prices);
  double busy = 0;
  for (size_t command = 0; command < commands.size(); ++command) {
    report.flops += commands.flops[command];
    report.atPeak += static_cast<double>(commands.flops[command]) / machine.matrixPeaks.of(commands.dtype[command]);
    if (isKernel(commands.kind[command]))
      report.kernels += prices.alone(command);
    if (commands.stream[command] == compute && !isWait(command))
      busy += runningOf(command);
  }
  report.idle = std::max(report.seconds - busy, 0.0);
}

void Reporter::addClasses(TimeReport &report) const {
  for (size_t command = 0; command < commands.size(); ++command) {
    if (isWait(command))
      continue;
    bool isCollective = commands.kind[command] == CommandKind::Collective;
    std::string name = isCollective ? nameOf(commands.collective[command]) : nameOf(commands.kind[command]);
    auto row =
        std::find_if(report.classes.begin(), report.classes.end(), [&](const auto &c) { return c.name == name; });
    if (row == report.classes.end()) {
      report.classes.emplace_back();
      row = report.classes.end() - 1;
      row->name = name;
    }
    ++row->commands;
    row->bytes += commands.bytes[command];
    row->flops += commands.flops[command];
    row->alone += prices.alone(command);
    row->running += runningOf(command);
  }
  std::sort(report.classes.begin(), report.classes.end(),
            [](const auto &a, const auto &b) { return a.alone != b.alone ? a.alone > b.alone : a.name < b.name; });
}

void Reporter::addStreams(TimeReport &report) const {
  for (const std::string &name : commands.streams) {
    report.streams.emplace_back();
    report.streams.back().name = name;
  }
  for (size_t command = 0; command < commands.size(); ++command) {
    TimeReport::Stream &row = report.streams[static_cast<size_t>(commands.stream[command])];
    row.commands += isWait(command) ? 0 : 1;
    (isWait(command) ? row.waiting : row.running) += runningOf(command);
  }
}

void Reporter::addUnits(TimeReport &report) const {
  std::vector<TimeReport::Unit> rows(commands.units.size());
  for (size_t unit = 0; unit < rows.size(); ++unit)
    rows[unit].name = commands.units[unit];
  for (size_t command = 0; command < commands.size(); ++command) {
    if (int32_t unit = commands.unit[command]; unit >= 0) {
      TimeReport::Unit &row = rows[static_cast<size_t>(unit)];
      ++row.collectives;
      row.bytes += commands.bytes[command];
      row.running += runningOf(command);
    }
    if (!isWait(command) || commands.stream[command] != compute)
      continue;
    if (int32_t unit = commands.unit[static_cast<size_t>(commands.awaited[command])]; unit >= 0)
      rows[static_cast<size_t>(unit)].stalls += runningOf(command);
  }
  report.units = std::move(rows);
}

std::string Reporter::describe(int32_t command) const {
  return plan.commands[static_cast<size_t>(command)].describe() + " (command " + std::to_string(command) + ")";
}

std::string Reporter::findCause(const Stall &stall) const {
  std::string what = stall.wait < 0 ? "the step ends with " : "waits for ";
  what += describe(stall.awaited);
  switch (stall.cause) {
  case StallCause::StepBegin:
    return what + ", which takes longer than what the step computes before";
  case StallCause::Gate:
    return what + ", which starts after " + describe(stall.blocker);
  case StallCause::Queue:
    return what + ", which runs after " + describe(stall.blocker) + " of its stream";
  }
  return what;
}

std::string Reporter::findRemedy(const Stall &stall) const {
  auto awaited = static_cast<size_t>(stall.awaited);
  if (commands.kind[awaited] != CommandKind::Collective)
    return "move work of the compute stream in front of the wait";
  if (commands.unit[awaited] < 0)
    return "start the collective earlier, or wait for its result later";
  bool isGather = !combines(commands.collective[awaited]);
  switch (stall.cause) {
  case StallCause::StepBegin:
    return isGather ? "make the first unit smaller, or gather it behind the optimizer of the step before"
                    : "reduce fewer bytes, or wait for the result later";
  case StallCause::Gate:
    return isGather
               ? "gather earlier (--prefetch), or keep the unit gathered"
               : "make the last unit of the backward pass smaller, or compute other gradients behind its gradients";
  case StallCause::Queue:
    return isGather ? "gather fewer bytes before it (units that stay gathered), or use a faster network"
                    : "make the last units of the backward pass smaller, or use a faster network";
  }
  return "";
}

void Reporter::addStalls(TimeReport &report) const {
  for (const Stall &stall : findStalls(commands, prices, simulation)) {
    TimeReport::Stall row;
    row.begin = stall.begin;
    row.seconds = stall.seconds;
    row.gain = stall.gain;
    row.wait = stall.wait;
    row.awaited = stall.awaited;
    row.place = plan.commands[static_cast<size_t>(stall.wait < 0 ? stall.awaited : stall.wait)].location;
    row.cause = findCause(stall);
    row.remedy = findRemedy(stall);
    report.stalls.push_back(std::move(row));
  }
}

Expected<TimeReport> spmd::cost::makeTimeReport(const Manifest &manifest, const Plan &plan, const Machine &machine) {
  CommandList commands = makeCommandList(manifest, plan);
  Expected<Prices> prices = priceCommands(commands, machine);
  if (!prices)
    return prices.error();
  TimeReport report;
  report.step = manifest.step;
  report.target = manifest.target;
  report.machine = machine.name;
  report.network = machine.network.name;
  report.ranks = manifest.ranks;
  Reporter reporter(plan, machine, commands, *prices);
  reporter.addTotals(report);
  reporter.addClasses(report);
  reporter.addStreams(report);
  reporter.addUnits(report);
  reporter.addStalls(report);
  return report;
}
