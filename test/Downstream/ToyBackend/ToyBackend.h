//===- ToyBackend.h - A backend that is not of this project ----------*- C++ -*-===//
//
// What a project outside of this one writes to add a device and a way for ranks
// to reach each other: memory that the host cannot look at, streams that run
// behind the caller, one process per rank over sockets. Nothing else knows it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYBACKEND_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYBACKEND_H

#include "Mail.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Host/KernelLibrary.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/Executor.h"

namespace toy {

class ToyMemory;

/// Registers the target "toy" and the communicators "sockets", which use `mail`.
void registerToy(std::shared_ptr<Mail> mail);

spmd::runtime::Expected<std::unique_ptr<spmd::runtime::Executor>>
makeToyExecutor(const spmd::runtime::Artifact &artifact, const spmd::runtime::KernelLibrary &kernels, ToyMemory &memory,
                spmd::runtime::CommunicatorFactory &communicators, spmd::runtime::AbortState &abort,
                const spmd::runtime::ExecutorOptions &options);

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYBACKEND_H
