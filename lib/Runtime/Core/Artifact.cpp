//===- Artifact.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Certificate.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

#include <filesystem>

using namespace spmd::runtime;

/// Whether the bytes start at a multiple of 16 on every rank, the widest access of a GPU.
static bool isAligned(const Plan &plan, const Ref &ref) {
  int64_t bits = plan.buffers[static_cast<size_t>(ref.buffer)].offset | ref.offset;
  for (int64_t stride : ref.coord)
    bits |= stride;
  return bits % 16 == 0;
}

/// Every kernel of the plan can be launched on every GPU that there is code for, with the arguments it takes.
static Status checkLaunches(const Manifest &manifest, const Plan &plan) {
  for (const KernelFile &file : manifest.kernels)
    for (size_t id = 0; !file.chip.empty() && id < plan.commands.size(); ++id) {
      const Command &command = plan.commands[id];
      const auto *kernel = command.as<KernelCommand>();
      if (!kernel)
        continue;
      std::string place = "/commands/" + std::to_string(id) + "/kernel: ";
      const KernelLaunch *launch = manifest.findLaunch(kernel->symbol, file.chip);
      if (!launch)
        return Status::badInput(place + "the manifest has no launch of '" + kernel->symbol + "' on " + file.chip);
      if (launch->pointers != static_cast<int64_t>(command.refs.size()))
        return Status::badInput(place + "'" + kernel->symbol + "' takes " + std::to_string(launch->pointers) +
                                " pointers on " + file.chip + ", not " + std::to_string(command.refs.size()));
      for (size_t i = 0; i < command.refs.size(); ++i)
        if (!isAligned(plan, command.refs[i]))
          return Status::badInput("/commands/" + std::to_string(id) + "/args/" + std::to_string(i) + ": kernels of " +
                                  file.chip + " take addresses that are multiples of 16");
    }
  return Status::success();
}

/// No command is to be done by a library's plan: nobody can run one yet.
static Status checkLibraryPlans(const Plan &plan) {
  for (size_t id = 0; id < plan.commands.size(); ++id)
    if (const auto *attention = plan.commands[id].as<AttentionCommand>(); attention && attention->libraryPlan)
      return Status::badInput("/commands/" + std::to_string(id) + "/library_plan: " + plan.commands[id].describe() +
                              " is to run a plan of '" + attention->libraryPlan->library +
                              "', and this runtime runs no library's plans; compile the step again without them, and "
                              "its own kernel computes it");
  return Status::success();
}

/// What was given instead of an artifact, and what to do with it; else the error of the file that is missing.
static Status explain(const std::string &folder, const Status &error) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(folder + "/step.json", ignored))
    return Status::badInput("'" + folder + "' is a captured step, no artifact yet: spmd-compile '" + folder +
                            "' --ranks=N -o NAME.spmd makes one");
  if (fs::is_regular_file(folder, ignored))
    return Status::badInput("'" + folder + "' is a file, and no artifact, which is a folder that spmd-compile makes of a "
                            "step captured by spmd.capture");
  return error;
}

/// Reads the plan of the program that the manifest of `artifact` is of, and checks it.
static Status loadPlan(Artifact &artifact) {
  const ProgramEntry &program = artifact.manifest.programs.front();
  std::string planPath = artifact.pathOf(program.plan);
  Expected<std::string> text = readFile(planPath);
  if (!text)
    return text.error();
  if (Status status = checkHash(planPath, *text, program.hash); !status.ok())
    return status;
  Expected<Plan> plan = parsePlan("'" + planPath + "'", *text);
  if (!plan)
    return plan.error();
  artifact.plan = std::move(*plan);

  artifact.traceHash = hashBytes(collectiveTrace(artifact.plan));
  if (formatHash(artifact.traceHash) != program.traceHash)
    return Status::badInput("'" + planPath + "': its collectives have the hash " + formatHash(artifact.traceHash) +
                            ", the manifest says " + program.traceHash +
                            ": manifest and plan are not of one compilation");
  Status certificate = checkLibraryPlans(artifact.plan);
  if (certificate.ok())
    certificate = checkLaunches(artifact.manifest, artifact.plan);
  if (certificate.ok())
    certificate = checkCertificate(artifact.manifest, artifact.plan);
  if (!certificate.ok())
    certificate.message = "'" + planPath + "': " + certificate.message;
  return certificate;
}

Expected<Artifact> spmd::runtime::loadArtifact(const std::string &folder) {
  Artifact artifact;
  artifact.folder = folder;
  std::string manifestPath = artifact.pathOf("manifest.json");
  Expected<std::string> text = readFile(manifestPath);
  if (!text)
    return explain(folder, text.error());
  Expected<Manifest> manifest = parseManifest("'" + manifestPath + "'", *text);
  if (!manifest)
    return manifest.error();
  artifact.manifest = std::move(*manifest);
  artifact.hash = hashBytes(*text);
  if (!artifact.manifest.values)
    return Status::badInput("'" + manifestPath + "': /values: is missing");
  if (artifact.manifest.programs.empty() || artifact.manifest.programs.front().name != kTrainStep)
    return Status::badInput("'" + manifestPath + "': /programs: has no program '" + kTrainStep + "' to begin with");

  Status status = loadPlan(artifact);
  for (size_t i = 0; i < artifact.manifest.others.size() && status.ok(); ++i) {
    Artifact program;
    program.folder = folder;
    program.manifest = std::move(artifact.manifest.others[i]);
    program.hash = artifact.hash;
    status = loadPlan(program);
    artifact.others.push_back(std::move(program));
  }
  artifact.manifest.others.clear();
  if (!status.ok())
    return status;
  return artifact;
}
