//===- Kernels.cpp - spmd-report kernels ----------------------------------===//
//
// What each generated kernel is, how often a step launches it, and for GPUs
// what the assembler said of it.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Text.h"
#include "tools/Usage.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>

using namespace spmd::runtime;
using Rows = std::vector<std::vector<std::string>>;

namespace {

/// How a step uses a kernel.
struct Use {
  int64_t launches = 0;
  int64_t parallel = 1, grain = 1;
};

} // namespace

static std::string joined(int64_t a, const char *between, int64_t b) {
  return formatCount(a) + between + formatCount(b);
}

/// One table: of a GPU, or, without one, of the CPU.
static void printKernels(const Artifact &artifact, const std::map<std::string, Use> &uses, const std::string &chip) {
  const Manifest &manifest = artifact.manifest;
  bool isHost = chip.empty();
  // An emulated kernel has no machine code to tell of.
  bool hasCode = false;
  for (const KernelLaunch &launch : manifest.launches)
    hasCode |= launch.chip == chip && launch.bytes > 0;
  std::vector<std::string> header = {"kernel", "kind", "launches"};
  if (isHost)
    header.insert(header.end(), {"iterations", "grain"});
  else
    header.insert(header.end(), {"blocks x threads", "dynamic shared"});
  if (hasCode)
    header.insert(header.end(), {"static shared", "registers", "barriers", "local", "spilled"});
  header.push_back("bytes required");
  header.push_back("bytes moved");
  Rows rows = {header};
  int64_t launches = 0, required = 0, moved = 0;
  bool allAreKnown = true;
  for (const KernelInfo &info : manifest.kernelTable) {
    auto found = uses.find(info.kernel);
    Use use = found == uses.end() ? Use() : found->second;
    const KernelLaunch *launch = manifest.findLaunch(info.kernel, chip);
    std::vector<std::string> row = {info.kernel, info.kind, formatCount(use.launches)};
    if (isHost) {
      row.insert(row.end(), {formatCount(use.parallel), formatCount(use.grain)});
    } else {
      KernelLaunch none;
      const KernelLaunch &l = launch ? *launch : none;
      row.insert(row.end(), {joined(l.blocks, " x ", l.threads), formatCount(l.dynamicSharedBytes)});
      if (hasCode && l.user) // of which ptxas says nothing
        row.insert(row.end(), {"-", "-", "-", "-", "-"});
      else if (hasCode)
        row.insert(row.end(), {formatCount(l.staticSharedBytes), formatCount(l.registers), formatCount(l.barriers),
                               formatCount(l.localBytes), joined(l.spillStoreBytes, " + ", l.spillLoadBytes)});
    }
    row.push_back(formatCount(info.requiredBytes));
    const std::optional<int64_t> &bytes = isHost ? info.movedBytes : launch ? launch->movedBytes : std::nullopt;
    row.push_back(bytes ? formatCount(*bytes) : "-");
    rows.push_back(std::move(row));
    launches += use.launches;
    required += use.launches * info.requiredBytes;
    moved += use.launches * bytes.value_or(0);
    allAreKnown &= bytes || !use.launches;
  }
  std::printf("\nkernels on %s: %zu, %s launches and %s bytes required per step and rank%s\n",
              isHost ? "the CPU" : chip.c_str(), manifest.kernelTable.size(), formatCount(launches).c_str(),
              formatCount(required).c_str(), allAreKnown ? (", " + formatCount(moved) + " moved").c_str() : "");
  std::fputs(formatTable(rows).c_str(), stdout);
}

static void printKernels(const Artifact &artifact) {
  const Manifest &manifest = artifact.manifest;
  std::printf("%s: target %s\n", manifest.step.c_str(), manifest.target.c_str());
  std::map<std::string, Use> uses;
  for (const Command &command : artifact.plan.commands)
    if (const auto *kernel = command.as<KernelCommand>()) {
      Use &use = uses[kernel->symbol];
      ++use.launches;
      use.parallel = kernel->parallel;
      use.grain = kernel->grain;
    }
  std::vector<std::string> chips;
  for (const KernelFile &file : manifest.kernels)
    if (chips.empty() || chips.back() != file.chip)
      chips.push_back(file.chip);
  for (const std::string &chip : chips)
    printKernels(artifact, uses, chip);
}

int reportKernels(int argc, char **argv) {
  CLI::App app("Prints the generated kernels of an artifact: kind, launches per step, launch shape, and required "
               "bytes (every operand read once).",
               "spmd-report kernels");
  app.failure_message(spmd::explainUsage);
  std::string folder;
  app.add_option("artifact", folder, "folder made by spmd-compile")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  Expected<Artifact> artifact = loadArtifact(folder);
  if (!artifact) {
    std::fprintf(stderr, "spmd-report: error: %s\n", artifact.error().message.c_str());
    return static_cast<int>(artifact.error().code);
  }
  printKernels(*artifact);
  return 0;
}
