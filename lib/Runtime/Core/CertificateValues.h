//===- CertificateValues.h - Rule 8 of the certificate ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CERTIFICATEVALUES_H
#define SPMD_RUNTIME_CORE_CERTIFICATEVALUES_H

#include "spmd/Runtime/Core/HappensBefore.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// Checks that the plan computes the manifest's table of values, all of whose lines are `table`: runs the plan on names
/// of values instead of numbers, in the order of its commands. Rules 1 to 6 must hold; then any order that waits allow
/// gives the same.
Status checkValues(const Manifest &manifest, const std::vector<ValueEntry> &table, const Plan &plan,
                   const HappensBefore &order);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CERTIFICATEVALUES_H
