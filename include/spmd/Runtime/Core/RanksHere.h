//===- RanksHere.h - The ranks that a process holds ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_RANKSHERE_H
#define SPMD_RUNTIME_CORE_RANKSHERE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace spmd::runtime {

/// How many ranks a job has, and which of them this process holds: [first, first + count), at least one. Only what
/// connects threads may assume that these are all.
struct RanksHere {
  int64_t total = 1, first = 0, count = 1;

  static RanksHere all(int64_t total) { return {total, 0, total}; }

  bool areAll() const { return count == total; }
  int64_t end() const { return first + count; }
  bool has(int64_t rank) const { return rank >= first && rank < end(); }
  /// The process that holds a rank: each has as many, in blocks.
  int64_t processOf(int64_t rank) const { return rank / count; }
  int64_t processes() const { return total / count; }
  /// "rank 2", or "ranks 4 to 7": those of a process.
  std::string describe(int64_t process) const {
    std::string first = std::to_string(process * count), last = std::to_string(process * count + count - 1);
    return count == 1 ? "rank " + first : "ranks " + first + " to " + last;
  }
  /// Where a rank stands in a list with one entry for each rank here.
  size_t indexOf(int64_t rank) const { return static_cast<size_t>(rank - first); }
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_RANKSHERE_H
