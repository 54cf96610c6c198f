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
#include "spmd/Runtime/Core/Status.h"

#include <map>
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
constexpr int32_t kPlanVersion = 1;

/// The JSON form: a line per buffer and command. parsePlan reads it back.
std::string writePlan(const Plan &plan);

/// Reads a plan; `name` is what errors call the text.
Expected<Plan> parsePlan(const std::string &name, std::string_view text);

/// The canonical collective trace: for every communicator that does not connect all ranks the line "comm axes\n", and
/// for every collective in program order the line "comm op dtype counts kinds unit\n"; lists are separated by commas and
/// what is empty is "-".
std::string collectiveTrace(const Plan &plan);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_PLAN_H
