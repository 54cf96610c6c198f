//===- RankReader.h - Bytes of any rank's arena -------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_RANKREADER_H
#define SPMD_RUNTIME_TRAIN_RANKREADER_H

#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/RankMemory.h"

namespace spmd::runtime {

/// Reads the arena of any rank of the job. Where not all ranks are here, all processes make the same reads in the same
/// order, and all of them get the bytes.
class RankReader {
public:
  /// A failed step, of any process, ends reads that need others.
  RankReader(const RankMemory &memory, CommunicatorFactory &processes, const AbortState &abort)
      : memory(memory), processes(processes), abort(abort) {}

  Status read(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
    if (memory.ranks().has(rank))
      if (Status status = memory.copyOut(rank, offset, destination, bytes); !status.ok())
        return status;
    return memory.ranks().areAll() ? Status::success() : processes.share(rank, destination, bytes, abort);
  }

private:
  const RankMemory &memory;
  CommunicatorFactory &processes;
  const AbortState &abort;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_RANKREADER_H
