//===- HappensBefore.h - The partial order of a plan's commands --*- C++ -*-===//
//
// The planner computes the same relation by code of its own
// (spmd/Transforms/Memory/HappensBefore.h): this one checks what was placed by it,
// and a mistake that both shared would go unseen.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_HAPPENSBEFORE_H
#define SPMD_RUNTIME_CORE_HAPPENSBEFORE_H

#include "spmd/Runtime/Core/Plan.h"

#include <cstdint>
#include <vector>

namespace spmd::runtime {

/// A command as far as order is concerned.
struct ScheduledCommand {
  int32_t stream = 0;
  int32_t awaited = -1; ///< of a wait: an earlier command
};

std::vector<ScheduledCommand> getSchedule(const Plan &plan);

/// Vector clocks over streams. With few streams a clock is a few words, so the
/// closure of thousands of commands takes linear time and memory.
class HappensBefore {
public:
  /// Waits must be for earlier commands.
  HappensBefore(const std::vector<ScheduledCommand> &commands, size_t numStreams);
  explicit HappensBefore(const Plan &plan);

  /// True when command `a` is complete before command `b` starts.
  bool ordered(int32_t a, int32_t b) const {
    return clock(b)[streams[static_cast<size_t>(a)]] > positions[static_cast<size_t>(a)];
  }

  /// Per stream: how many of its commands are complete when `command` starts.
  const uint32_t *clock(int32_t command) const { return &clocks[static_cast<size_t>(command) * numStreams]; }

  /// Position of a command in its stream.
  uint32_t position(int32_t command) const { return positions[static_cast<size_t>(command)]; }

  size_t streamCount() const { return numStreams; }

private:
  size_t numStreams;
  std::vector<size_t> streams;
  std::vector<uint32_t> positions;
  std::vector<uint32_t> clocks;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_HAPPENSBEFORE_H
