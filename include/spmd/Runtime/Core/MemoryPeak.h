//===- MemoryPeak.h - The most bytes that a schedule has alive ----*- C++ -*-===//
//
// Two buffers may share bytes if all uses of one are complete before any use of
// the other starts, on every execution. The peak is the largest set of buffers
// of which no two may, so no placement takes less. What a collective reads and
// writes is alive until the stream that reuses its bytes has waited for it.
// docs/planning.md explains it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_MEMORYPEAK_H
#define SPMD_RUNTIME_CORE_MEMORYPEAK_H

#include "spmd/Runtime/Core/HappensBefore.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spmd::runtime {

/// A buffer and who touches it.
struct BufferLife {
  int64_t bytes = 0;
  /// The commands that read or write it.
  std::vector<int32_t> uses;
  /// Written before the first command; read after the last.
  bool fromBegin = false, toEnd = false;

  bool isUsed() const { return fromBegin || toEnd || !uses.empty(); }
};

struct MemoryPeak {
  int64_t bytes = 0;
  /// The buffers alive, by their number.
  std::vector<size_t> alive;
  /// The first command, in program order, at which all of them are in use; -1
  /// if that is before all commands.
  int32_t command = -1;
};

/// The peak of buffers used by `commands`, whose order is `order`. Of several
/// sets of most bytes it is the earliest. Unused buffers are no part of it.
MemoryPeak findMemoryPeak(const std::vector<ScheduledCommand> &commands, const HappensBefore &order,
                          const std::vector<BufferLife> &lives);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_MEMORYPEAK_H
