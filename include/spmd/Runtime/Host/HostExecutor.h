//===- HostExecutor.h - Ranks as threads of this process ----------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_HOSTEXECUTOR_H
#define SPMD_RUNTIME_HOST_HOSTEXECUTOR_H

#include "spmd/Runtime/Host/KernelLibrary.h"
#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/Executor.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <memory>

namespace spmd::runtime {

/// Resolves kernels and pointers and starts the threads: for each rank here one for each stream that has commands, and
/// helpers for the parallel loops of the first stream. All arguments but the last outlive the executor.
Expected<std::unique_ptr<Executor>> makeHostExecutor(const Artifact &artifact, const KernelLibrary &kernels,
                                                     const RankMemory &memory, CommunicatorFactory &communicators,
                                                     AbortState &abort, const ExecutorOptions &options);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_HOSTEXECUTOR_H
