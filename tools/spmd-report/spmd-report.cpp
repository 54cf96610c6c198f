//===- spmd-report.cpp - What an artifact holds ---------------------------===//
//
// Prints memory, shard units and collectives of an artifact, without running
// it. Exit codes: 0 done, 2 usage or input.
//
//===----------------------------------------------------------------------===//

#include "Captured.h"
#include "Kernels.h"
#include "Time.h"
#include "Units.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/PlanReport.h"
#include "spmd/Runtime/Core/Text.h"
#include "tools/Usage.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

using namespace spmd::runtime;
using Rows = std::vector<std::vector<std::string>>;

static void printTable(const Rows &rows) { std::fputs(formatTable(rows).c_str(), stdout); }

static void printHeader(const Manifest &manifest) {
  std::string mesh;
  for (const MeshAxis &axis : manifest.mesh)
    mesh += (mesh.empty() ? "" : ", ") + axis.name + "=" + std::to_string(axis.size);
  std::printf("%s: target %s, mesh %s, %s, policy %s, compiled by spmd %s\n", manifest.step.c_str(),
              manifest.target.c_str(), mesh.c_str(), manifest.mode.c_str(), manifest.policy.c_str(),
              manifest.compiler.c_str());
}

static void printText(const std::string &text) {
  if (!text.empty())
    std::printf("\n%s", text.c_str());
}

static void printOutsideArena(const PlanReport &report) {
  if (report.outsideArena.empty())
    return;
  std::printf("outside the arena:\n");
  Rows rows;
  for (const OutsideArena &entry : report.outsideArena)
    rows.push_back({entry.name, entry.bytes ? formatCount(*entry.bytes) : "up to the library"});
  printTable(rows);
}

static void printCollectives(const Plan &plan) {
  std::printf("\ncollectives per step, in program order:\n");
  Rows rows = {{"command", "op", "unit", "communicator", "dtype", "bytes per rank", "location"}};
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    const auto *collective = command.as<CollectiveCommand>();
    if (!collective)
      continue;
    std::string op = nameOf(command);
    for (ReductionKind kind : collective->kinds)
      op += std::string(" ") + nameOf(kind);
    rows.push_back({std::to_string(id), op, collective->unit.empty() ? "-" : collective->unit,
                    plan.communicators[static_cast<size_t>(collective->communicator)], nameOf(collective->dtype),
                    formatCount(command.sentBytes()), command.location});
  }
  if (rows.size() == 1)
    rows = {{"none"}};
  printTable(rows);
}

static void printCommands(const Plan &plan) {
  std::map<std::string, int64_t> counts;
  for (const Command &command : plan.commands)
    ++counts[nameOf(command)];
  std::printf("\ncommands: %zu on %zu streams\n", plan.commands.size(), plan.streams.size());
  Rows rows;
  for (const auto &[name, count] : counts)
    rows.push_back({name, formatCount(count)});
  printTable(rows);
}

int main(int argc, char **argv) {
  if (argc > 1 && argv[1] == std::string("units"))
    return reportUnits(argc - 1, argv + 1);
  if (argc > 1 && argv[1] == std::string("captured"))
    return reportCaptured(argc - 1, argv + 1);
  if (argc > 1 && argv[1] == std::string("kernels"))
    return reportKernels(argc - 1, argv + 1);
  if (argc > 1 && argv[1] == std::string("time"))
    return reportTime(argc - 1, argv + 1);
  CLI::App app("Prints memory, shard units and collectives of an artifact. `spmd-report kernels ARTIFACT` prints its "
               "kernels, `spmd-report time ARTIFACT` the modelled time of a step, `spmd-report units STEP` the shard "
               "units of a step package, and `spmd-report captured STEP` the Python values that are constants of its "
               "graph.",
               "spmd-report");
  app.failure_message(spmd::explainUsage);
  std::string folder;
  try {
    bool json = false;
    app.add_option("artifact", folder, "folder made by spmd-compile")->required();
    app.add_flag("--json", json, "the report as JSON (docs/planning.md)");
    app.parse(argc, argv);
    Expected<Artifact> artifact = loadArtifact(folder);
    if (!artifact) {
      std::fprintf(stderr, "spmd-report: error: %s\n", artifact.error().message.c_str());
      return static_cast<int>(artifact.error().code);
    }
    PlanReport report = makePlanReport(artifact->manifest, artifact->plan);
    if (json) {
      std::fputs(planReportJson(report).c_str(), stdout);
      return 0;
    }
    printHeader(artifact->manifest);
    printText(formatArena(report));
    printOutsideArena(report);
    printText(formatPeak(report));
    printText(formatReplicated(report));
    printText(formatUnits(report));
    printCollectives(artifact->plan);
    printCommands(artifact->plan);
    return 0;
  } catch (const CLI::ParseError &problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "spmd-report: error: %s\n", problem.what());
    return 3;
  }
}
