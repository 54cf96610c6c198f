//===- Time.cpp - spmd-report time ----------------------------------------===//
//
// What a step takes on a machine that nobody needs to have, by the cost model.
//
//===----------------------------------------------------------------------===//

#include "Time.h"
#include "spmd/Cost/MachineFile.h"
#include "spmd/Cost/TimeReport.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Text.h"
#include "tools/Usage.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace spmd;
using runtime::Expected;
using runtime::Status;

namespace {

struct Arguments {
  std::string artifact, machine = "reference-h100", network;
  bool json = false;
};

} // namespace

static Status report(const Arguments &arguments) {
  Expected<cost::Machine> machine = cost::loadMachine(cost::machineFolder(), arguments.machine, arguments.network);
  if (!machine)
    return machine.error();
  Expected<runtime::Artifact> artifact = runtime::loadArtifact(arguments.artifact);
  if (!artifact)
    return artifact.error();
  Expected<cost::TimeReport> report = cost::makeTimeReport(artifact->manifest, artifact->plan, *machine);
  if (!report)
    return report.error();
  std::fputs((arguments.json ? cost::timeReportJson(*report) : cost::formatTimeReport(*report)).c_str(), stdout);
  return Status::success();
}

int reportTime(int argc, char **argv) {
  CLI::App app("Prints the modelled time of an artifact's step on a machine (docs/cost.md). It is not a measurement.",
               "spmd-report time");
  app.failure_message(explainUsage);
  Arguments arguments;
  std::string folder = cost::machineFolder();
  app.add_option("artifact", arguments.artifact, "folder made by spmd-compile")->required();
  app.add_option("--machine", arguments.machine,
                 "JSON file, or one of " + runtime::joinNames(cost::listMachines(folder)) +
                     " (default reference-h100)");
  app.add_option("--network", arguments.network,
                 "JSON file, or one of " + runtime::joinNames(cost::listMachines(folder, /*networks=*/true)) +
                     " (default: the machine's)");
  app.add_flag("--json", arguments.json, "as JSON");
  try {
    app.parse(argc, argv);
    Status status = report(arguments);
    if (status.ok())
      return 0;
    std::fprintf(stderr, "spmd-report: error: %s\n", status.message.c_str());
    return static_cast<int>(status.code);
  } catch (const CLI::ParseError &problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "spmd-report: error: %s\n", problem.what());
    return 3;
  }
}
