//===- CertificateInFlight.h - Rule 11 of the certificate ---------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CORE_CERTIFICATEINFLIGHT_H
#define SPMD_LIB_RUNTIME_CORE_CERTIFICATEINFLIGHT_H

#include "spmd/Runtime/Core/HappensBefore.h"
#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// At most kMostInFlight collectives can be in flight together.
Status checkInFlight(const Plan &plan, const HappensBefore &order);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_CERTIFICATEINFLIGHT_H
