//===- Join.h - This process as a part of a job -------------------*- C++ -*-===//
//
// The processes of a job share memory within a host, where collectives are those
// of threads (RankOrderCommunicator.h), and send messages between hosts; whatever
// the launch, the bits are the same. Each process holds the same number of ranks,
// in blocks.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_PROCESS_JOIN_H
#define SPMD_RUNTIME_PROCESS_JOIN_H

#include "spmd/Runtime/Process/Launch.h"
#include "spmd/Runtime/Train/Trainer.h"

namespace spmd::runtime {

/// Finds out which process of a job this is, once for all, and sets `trainer` up for it: how its ranks reach the
/// others, and how many of the threads are its own. A process that is alone is left as it is. Options that say
/// otherwise than at the first time are an error.
Expected<Launch> joinJob(const LaunchOptions &options, TrainerOptions &trainer);

/// Registers the communicators "process": those of the job that `launch` is part of. They meet when the first are made.
void registerProcesses(const Launch &launch);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_PROCESS_JOIN_H
