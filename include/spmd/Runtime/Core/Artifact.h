//===- Artifact.h - Loading an artifact folder --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_ARTIFACT_H
#define SPMD_RUNTIME_CORE_ARTIFACT_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <string>

namespace spmd::runtime {

struct Artifact {
  std::string folder;
  Manifest manifest;
  Plan plan;              ///< of the program "train_step"
  uint64_t traceHash = 0; ///< of the plan's collectives
  uint64_t hash = 0;      ///< of the manifest, which has those of the other files

  std::string pathOf(const std::string &file) const { return folder + "/" + file; }
};

/// Reads manifest and plan of the artifact in `folder`. The collective trace
/// must have the hash in the manifest, and the plan must pass the certificate
/// (Certificate.h): an artifact that loads cannot deadlock or race.
Expected<Artifact> loadArtifact(const std::string &folder);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_ARTIFACT_H
