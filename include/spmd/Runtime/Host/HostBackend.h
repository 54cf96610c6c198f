//===- HostBackend.h - Artifacts that run on CPUs -----------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_HOSTBACKEND_H
#define SPMD_RUNTIME_HOST_HOSTBACKEND_H

namespace spmd::runtime {

/// Registers the backend of the targets "host" and "emulate", and the communicators "threads". Once is enough; again
/// does nothing.
void registerHost();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_HOSTBACKEND_H
