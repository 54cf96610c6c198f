//===- CertificateMemory.h - Rules 4 to 6 of the certificate ------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CERTIFICATEMEMORY_H
#define SPMD_RUNTIME_CORE_CERTIFICATEMEMORY_H

#include "spmd/Runtime/Core/HappensBefore.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// An error at a command that breaks a rule.
Status certificateError(const Plan &plan, int32_t id, int rule, const std::string &message);

/// "command 17 (gemm at fc1 train.py:12)".
std::string describeCommand(const Plan &plan, int32_t id);

/// The buffer of something that the manifest places in the arena.
struct BoundBuffer {
  const Buffer *buffer = nullptr;  ///< null: none holds it
  bool isAmbiguous = false;        ///< several do, and the manifest does not say which
  bool isTouched = false;          ///< some buffer, of whatever class, shares bytes with it
};
BoundBuffer findBoundBuffer(const Plan &plan, std::optional<int64_t> named, int64_t offset, int64_t bytes);

/// Checks that live bytes never overlap, that conflicting accesses are ordered,
/// and that only written bytes are read. References must lie in their buffers.
Status checkMemory(const Manifest &manifest, const Plan &plan, const HappensBefore &order);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CERTIFICATEMEMORY_H
