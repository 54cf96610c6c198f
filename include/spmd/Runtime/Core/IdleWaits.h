//===- IdleWaits.h - Waits that order nothing ---------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_IDLEWAITS_H
#define SPMD_RUNTIME_CORE_IDLEWAITS_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <cstdint>
#include <vector>

namespace spmd::runtime {

/// Waits without which everything that the certificate wants ordered is ordered as it is with them: what they order is
/// in other waits, or touches no byte that the others touch. All of them together may be left out, and then no other
/// one may. In the order of the plan, which has offsets.
std::vector<int32_t> findIdleWaits(const Manifest &manifest, const Plan &plan);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_IDLEWAITS_H
