//===- RanksHere.h - The ranks that a process holds ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_RANKSHERE_H
#define SPMD_RUNTIME_CORE_RANKSHERE_H

#include <cstddef>
#include <cstdint>

namespace spmd::runtime {

/// How many ranks a job has, and which of them this process holds: [first, first + count), at least one. Only what
/// connects threads may assume that these are all.
struct RanksHere {
  int64_t total = 1, first = 0, count = 1;

  static RanksHere all(int64_t total) { return {total, 0, total}; }

  bool areAll() const { return count == total; }
  int64_t end() const { return first + count; }
  bool has(int64_t rank) const { return rank >= first && rank < end(); }
  /// Where a rank stands in a list with one entry for each rank here.
  size_t indexOf(int64_t rank) const { return static_cast<size_t>(rank - first); }
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_RANKSHERE_H
