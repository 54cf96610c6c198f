//===- RankMemory.h - The arenas of all ranks --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_RANKMEMORY_H
#define SPMD_RUNTIME_HOST_RANKMEMORY_H

#include "spmd/Runtime/Core/Arena.h"

#include <memory>
#include <vector>

namespace spmd::runtime {

/// One arena per rank. Trainers of several programs over one state share it:
/// the state comes first in every arena and is laid out alike, the rest belongs
/// to the program that runs.
class RankMemory {
public:
  static Expected<std::shared_ptr<RankMemory>> allocate(int64_t ranks, int64_t bytes);

  /// Makes the arenas at least `bytes` large and keeps the first `stateBytes`
  /// of each. The arenas may move: then generation() is another.
  Status grow(int64_t bytes, int64_t stateBytes);

  /// One base pointer per rank.
  const std::vector<char *> &bases() const { return pointers; }
  int64_t generation() const { return moves; }

  /// Why the state is lost: a step failed in the middle. Success until then.
  Status failure;

private:
  RankMemory() = default;

  std::vector<Arena> arenas;
  std::vector<char *> pointers;
  int64_t moves = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_RANKMEMORY_H
