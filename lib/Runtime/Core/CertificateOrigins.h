//===- CertificateOrigins.h - Rule 10 of the certificate ----------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CERTIFICATEORIGINS_H
#define SPMD_RUNTIME_CORE_CERTIFICATEORIGINS_H

#include "spmd/Runtime/Core/Manifest.h"

namespace spmd::runtime {

/// Checks of the manifest's table of values, all of whose lines are `table`, that what ranks have apart is combined
/// before it counts for all of them. The table must be well-formed (rule 8).
Status checkOrigins(const Manifest &manifest, const std::vector<ValueEntry> &table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CERTIFICATEORIGINS_H
