//===- Plan.h - A command plan ------------------------------------*- C++ -*-===//
//
// The program that every rank runs: buffers in the rank's arena, and commands
// on streams. Commands of one stream run in order; between streams only `wait`
// orders. docs/artifact-format.md describes every field of the JSON form.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_PLAN_H
#define SPMD_RUNTIME_CORE_PLAN_H

#include "spmd/Runtime/Core/Command.h"
#include "spmd/Runtime/Core/Repeats.h"
#include "spmd/Runtime/Core/Status.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

/// A named range of the arena.
struct Buffer {
  int32_t id = 0;
  std::string name;
  std::string memoryClass; ///< "gathered", "activations", "io", ...
  int64_t offset = 0;      ///< bytes in the arena
  int64_t bytes = 0;
  int64_t alignment = 1; ///< what the offset is a multiple of, where something needs that
  bool state = false; ///< persistent: keeps its value between steps
  std::string location;
};

/// Planners align transient buffers to this: a cache line, and a vector register.
constexpr int64_t kTransientAlignment = 64;

struct Plan {
  std::vector<std::string> streams;
  std::vector<std::string> communicators;
  /// Of a communicator that does not connect all ranks, by name: the axes of the mesh along which it does.
  std::map<std::string, std::vector<std::string>> axes;
  /// Of a stream whose commands go before those of others on a device, by name: the greater, the sooner. Others: 0.
  std::map<std::string, int64_t> priorities;
  /// The most thread blocks that a collective may hold on a device, by communicator. Others: as the library likes.
  std::map<std::string, int64_t> maxBlocks;
  std::vector<Buffer> buffers; ///< buffers[i].id == i
  std::vector<Command> commands;

  /// The axes of a communicator, by number; none: it connects all ranks.
  const std::vector<std::string> &axesOf(int32_t communicator) const;
  int64_t priorityOf(size_t stream) const;
  /// 0: as the library likes.
  int64_t maxBlocksOf(int32_t communicator) const;
};

/// The version of the JSON form that is written, and the only one that is read.
constexpr int32_t kPlanVersion = 2;

/// A plan as its file has it: a loop over microbatches may have one iteration that stands for those behind it, whose
/// numbers are of commands, and what it is fed are buffers.
struct PlanFile {
  Plan plan;
  std::optional<Repeats> repeats;
};

/// The plan with all iterations put in. Fails where those that the file has are not alike.
Expected<Plan> unroll(PlanFile file);

/// The JSON form: a line per buffer and command. parsePlanFile reads it back.
std::string writePlanFile(const PlanFile &file);
std::string writePlan(const Plan &plan);

/// Reads a plan; `name` is what errors call the text.
Expected<PlanFile> parsePlanFile(const std::string &name, std::string_view text);

/// The same with all iterations.
Expected<Plan> parsePlan(const std::string &name, std::string_view text);

/// The canonical collective trace: for every communicator that does not connect all ranks the line "comm axes\n", and
/// for every collective in program order the line "comm op dtype counts kinds unit\n"; lists are separated by commas and
/// what is empty is "-".
std::string collectiveTrace(const Plan &plan);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_PLAN_H
