//===- RankAccess.h - Bytes of any rank's arena -------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_RANKACCESS_H
#define SPMD_RUNTIME_TRAIN_RANKACCESS_H

#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <cstring>

namespace spmd::runtime {

/// Reads and writes the arenas of all ranks of the job. A process that reaches all of them does so alone. Else all
/// processes make the same reads in the same order, and get the bytes; and each writes to its own.
class RankAccess {
public:
  /// A failed step, of any process, ends reads that need others.
  RankAccess(RankMemory &memory, CommunicatorFactory &processes, const AbortState &abort)
      : memory(memory), processes(processes), abort(abort) {}

  Status read(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
    if (reaches(rank))
      if (Status status = readReached(rank, offset, destination, bytes); !status.ok())
        return status;
    if (memory.ranks().areAll() || processes.hasAllArenas())
      return Status::success();
    if (processes.readsAlone())
      return memory.ranks().has(rank) ? Status::success()
                                      : processes.readArena(rank, offset, destination, bytes, abort);
    return processes.share(memory.ranks().processOf(rank), destination, bytes, abort);
  }

  /// Whether this process gets to the arena of a rank.
  bool reaches(int64_t rank) const { return memory.ranks().has(rank) || processes.hasAllArenas(); }

  Status readReached(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
    if (memory.ranks().has(rank))
      return memory.copyOut(rank, offset, destination, bytes);
    std::memcpy(destination, processes.arenaOf(rank) + offset, static_cast<size_t>(bytes));
    return Status::success();
  }

  Status writeReached(int64_t rank, int64_t offset, const void *source, int64_t bytes) const {
    if (memory.ranks().has(rank))
      return memory.copyIn(rank, offset, source, bytes);
    std::memcpy(processes.arenaOf(rank) + offset, source, static_cast<size_t>(bytes));
    return Status::success();
  }

private:
  RankMemory &memory;
  CommunicatorFactory &processes;
  const AbortState &abort;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_RANKACCESS_H
