//===- spmd-report.cpp - What an artifact holds ---------------------------===//
//
// Prints memory, shard units and collectives of an artifact, without running
// it. Exit codes: 0 done, 2 usage or input.
//
//===----------------------------------------------------------------------===//

#include "Units.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
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

static void printArena(const Manifest &manifest) {
  std::printf("\narena: %s bytes per rank\n", formatCount(manifest.arenaBytes).c_str());
  printTable({{"persistent", formatCount(manifest.stateBytes)}, {"transient", formatCount(manifest.transientBytes)}});
  std::printf("by class, at the transient peak:\n");
  Rows rows;
  for (const auto &[name, bytes] : manifest.classBytes)
    rows.push_back({name, formatCount(bytes)});
  printTable(rows);
  if (manifest.outsideArena.empty())
    return;
  std::printf("outside the arena:\n");
  rows.clear();
  for (const OutsideArena &entry : manifest.outsideArena)
    rows.push_back({entry.name, entry.bytes ? formatCount(*entry.bytes) : "up to the library"});
  printTable(rows);
}

/// A buffer lives from its first to its last command, in program order.
static void printPeak(const Plan &plan) {
  struct Life {
    size_t first = SIZE_MAX, last = 0;
  };
  std::vector<Life> lives(plan.buffers.size());
  for (size_t id = 0; id < plan.commands.size(); ++id)
    for (const Ref &ref : plan.commands[id].refs) {
      Life &life = lives[static_cast<size_t>(ref.buffer)];
      life.first = std::min(life.first, id);
      life.last = std::max(life.last, id);
    }
  // The bytes alive change only where a buffer begins or has ended.
  std::vector<int64_t> change(plan.commands.size() + 1);
  for (const Buffer &buffer : plan.buffers) {
    const Life &life = lives[static_cast<size_t>(buffer.id)];
    if (buffer.state || life.first == SIZE_MAX)
      continue;
    change[life.first] += buffer.bytes;
    change[life.last + 1] -= buffer.bytes;
  }
  int64_t alive = 0, most = 0;
  size_t peak = 0;
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    alive += change[id];
    if (alive > most) {
      most = alive;
      peak = id;
    }
  }
  if (most == 0)
    return;
  const Command &command = plan.commands[peak];
  std::printf("\nmemory peak, in program order: %s transient bytes alive at "
              "command %zu (%s)%s%s\n",
              formatCount(most).c_str(), peak, command.describe().c_str(), command.location.empty() ? "" : ", ",
              command.location.c_str());
  std::vector<const Buffer *> largest;
  for (const Buffer &buffer : plan.buffers) {
    const Life &life = lives[static_cast<size_t>(buffer.id)];
    if (!buffer.state && life.first <= peak && peak <= life.last)
      largest.push_back(&buffer);
  }
  std::sort(largest.begin(), largest.end(), [](const Buffer *a, const Buffer *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->id < b->id;
  });
  Rows rows;
  for (size_t i = 0; i < std::min<size_t>(largest.size(), 10); ++i)
    rows.push_back({largest[i]->name, largest[i]->memoryClass, formatCount(largest[i]->bytes), largest[i]->location});
  printTable(rows);
  if (largest.size() > rows.size())
    std::printf("  and %zu smaller ones\n", largest.size() - rows.size());
}

static void printUnits(const Manifest &manifest) {
  std::printf("\nshard units:\n");
  Rows rows = {{"unit", "modules", "parameters", "elements", "padded", "bytes per rank"}};
  for (const Unit &unit : manifest.units) {
    int64_t elements = 0;
    for (const Segment &segment : unit.segments)
      elements += segment.numel;
    std::string modules;
    for (const std::string &module : unit.modules)
      modules += (modules.empty() ? "" : " ") + (module.empty() ? std::string("(root)") : module);
    rows.push_back({unit.name, modules, formatCount(unit.segments.size()), formatCount(elements),
                    formatCount(unit.padded), formatCount(unit.chunk * sizeOf(unit.dtype))});
  }
  printTable(rows);
}

static void printCollectives(const Plan &plan) {
  std::printf("\ncollectives per step, in program order:\n");
  Rows rows = {{"command", "op", "unit", "communicator", "dtype", "bytes per rank", "location"}};
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    if (!command.isCollective())
      continue;
    std::string op = nameOf(command.kind);
    for (ReductionKind kind : command.kinds)
      op += std::string(" ") + nameOf(kind);
    rows.push_back({std::to_string(id), op, command.unit.empty() ? "-" : command.unit,
                    plan.communicators[static_cast<size_t>(command.communicator)], nameOf(command.dtype),
                    formatCount(command.sentBytes()), command.location});
  }
  if (rows.size() == 1)
    rows = {{"none"}};
  printTable(rows);
}

static void printCommands(const Plan &plan) {
  std::map<std::string, int64_t> counts;
  for (const Command &command : plan.commands)
    ++counts[nameOf(command.kind)];
  std::printf("\ncommands: %zu on %zu streams\n", plan.commands.size(), plan.streams.size());
  Rows rows;
  for (const auto &[name, count] : counts)
    rows.push_back({name, formatCount(count)});
  printTable(rows);
}

int main(int argc, char **argv) {
  if (argc > 1 && argv[1] == std::string("units"))
    return reportUnits(argc - 1, argv + 1);
  CLI::App app("Prints memory, shard units and collectives of an artifact. `spmd-report units STEP` prints the shard "
               "units of a step package.",
               "spmd-report");
  std::string folder;
  try {
    app.add_option("artifact", folder, "folder made by spmd-compile")->required();
    app.parse(argc, argv);
    Expected<Artifact> artifact = loadArtifact(folder);
    if (!artifact) {
      std::fprintf(stderr, "spmd-report: error: %s\n", artifact.error().message.c_str());
      return static_cast<int>(artifact.error().code);
    }
    printHeader(artifact->manifest);
    printArena(artifact->manifest);
    printPeak(artifact->plan);
    printUnits(artifact->manifest);
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
