//===- Units.cpp - spmd-report units --------------------------------------===//
//
// What a wrap policy makes of a step package, before anything is compiled.
//
//===----------------------------------------------------------------------===//

#include "Units.h"
#include "spmd/ShardUnits/Report.h"
#include "tools/Usage.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>

using namespace spmd;
using runtime::Expected;
using runtime::Status;

namespace {

struct Arguments {
  std::string step, policyFile, mesh, reshard, mode = "fully_shard";
  std::vector<std::string> policies, ignoredModules, ignoredParameters;
  int64_t ranks = units::kRanksNotSaid;
  bool strictTied = false, json = false;
};

} // namespace

static Expected<units::Policy> readPolicies(const Arguments &arguments) {
  if (arguments.policies.empty())
    return units::annotationsPolicy();
  if (!arguments.policyFile.empty())
    return Status::badInput("--policy and --policy-file exclude each other");
  // Each by itself first, so that a position counts from its beginning.
  std::string all;
  for (const std::string &text : arguments.policies) {
    Expected<units::Policy> policy = units::parsePolicy(text);
    if (!policy)
      return Status::badInput("--policy: " + policy.error().message);
    if (arguments.policies.size() == 1)
      return policy;
    all += (all.empty() ? "or(" : ";") + text;
  }
  Expected<units::Policy> policy = units::parsePolicy(all + ")");
  if (!policy)
    return Status::badInput("--policy: " + policy.error().message);
  return policy;
}

static Status report(const Arguments &arguments) {
  units::Request request;
  Expected<units::Policy> policy = readPolicies(arguments);
  if (!policy)
    return policy.error();
  request.policy = *policy;
  Expected<units::Mesh> mesh = units::chooseMesh(arguments.ranks, arguments.mesh);
  if (!mesh)
    return Status::badInput("--mesh=" + arguments.mesh + ": " + mesh.error().message);
  if (mesh->tensor > 1)
    return Status::badInput("--mesh=" + arguments.mesh + ": " + units::kNoTensorHere);
  request.mesh = *mesh;
  request.isMeshOpen = arguments.mesh.empty();
  request.defaults.mode = units::parseMode(arguments.mode);
  if (!request.defaults.mode)
    return Status::badInput("--mode=" + arguments.mode + ": expected " + units::kModes);
  if (!arguments.reshard.empty()) {
    Expected<int64_t> reshard = units::parseReshard(arguments.reshard);
    if (!reshard)
      return Status::badInput("--reshard-after-forward=" + arguments.reshard + ": " + reshard.error().message);
    request.defaults.reshardAfterForward = *reshard;
  }
  if (!arguments.policyFile.empty())
    if (Status status = units::readPlanFile(arguments.policyFile, request); !status.ok())
      return status;
  request.ignoredModules.insert(request.ignoredModules.end(), arguments.ignoredModules.begin(),
                                arguments.ignoredModules.end());
  request.ignoredParameters.insert(request.ignoredParameters.end(), arguments.ignoredParameters.begin(),
                                   arguments.ignoredParameters.end());
  request.strictTied |= arguments.strictTied;

  std::filesystem::path path = arguments.step;
  if (std::filesystem::is_directory(path))
    path /= "step.json";
  Expected<std::string> text = runtime::readFile(path.string());
  if (!text)
    return text.error();
  runtime::JsonDocument document(path.string(), *text);
  if (!document.status().ok())
    return document.status();
  runtime::JsonValue root = document.root();
  if (std::string format = root["format"].asString(); format != "spmd-step")
    root["format"].fail("expected \"spmd-step\", found \"" + format + "\"");
  Expected<units::ModuleTree> tree = units::ModuleTree::read(root);
  if (root.has("units"))
    request.annotations = units::readAnnotations(root["units"]);
  if (root.has("precision") && !request.defaults.precision) {
    request.defaults.precision = units::readPrecision(root["precision"]["options"]);
    request.exemptClasses = root["precision"]["exempt_classes"].asStrings();
  }
  if (!document.status().ok())
    return document.status();
  if (!tree)
    return Status::badInput(path.string() + ": " + tree.error().message);
  Expected<units::ShardUnits> assigned = units::assignShardUnits(*tree, request);
  if (!assigned)
    return assigned.error();
  std::fputs((arguments.json ? units::toJson(*tree, *assigned) : units::formatUnits(*tree, *assigned)).c_str(), stdout);
  return Status::success();
}

int reportUnits(int argc, char **argv) {
  CLI::App app("Prints the shard units of a step package under a wrap policy, and their cost.",
               "spmd-report units");
  app.failure_message(spmd::explainUsage);
  Arguments arguments;
  app.add_option("step", arguments.step, "step package, or its step.json")->required();
  app.add_option("--policy", arguments.policies,
                 "annotations (default), auto, none, always, class:A,B, size:N[,force-leaf=A+B][,exclude=A+B], "
                 "name:REGEX, or(P;P); if repeated, a module is a unit if any policy selects it")
      ->take_all();
  app.add_option("--policy-file", arguments.policyFile, "rules and options per unit, docs/shard-units.md");
  app.add_option("--ignored-module", arguments.ignoredModules, "path of a module whose parameters stay whole on "
                                                               "every rank; repeatable");
  app.add_option("--ignored-parameter", arguments.ignoredParameters, "name of a parameter that stays whole on every "
                                                                     "rank; repeatable");
  app.add_option("--ranks", arguments.ranks, "number of ranks (default: those of the mesh, or 1)");
  app.add_option("--mesh", arguments.mesh, "arrangement of the ranks: replicate:N,shard:M or shard:M");
  app.add_option("--mode", arguments.mode,
                 "fully_shard (default), shard_grad_op, shard_optimizer, hybrid (on a mesh of two axes), replicate or "
                 "default (as a memory budget allows)");
  app.add_option("--reshard-after-forward", arguments.reshard,
                 "true, false, or a number of ranks (default: by the mode; true for fully_shard)");
  app.add_flag("--strict-tied", arguments.strictTied, "tied parameters with owners in different units are an error");
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
  }
}
