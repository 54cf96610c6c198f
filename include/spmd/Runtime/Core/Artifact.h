//===- Artifact.h - Loading an artifact folder --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_ARTIFACT_H
#define SPMD_RUNTIME_CORE_ARTIFACT_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// The programs of an artifact. The first is the step; a first step that is computed otherwise is another one.
inline constexpr char kTrainStep[] = "train_step", kFirstStep[] = "first_step";

struct Artifact {
  std::string folder;
  Manifest manifest;
  Plan plan;              ///< of the program "train_step"
  uint64_t traceHash = 0; ///< of the plan's collectives
  uint64_t hash = 0;      ///< of the manifest, which has those of the other files
  /// Each further program, as an artifact of its own in the same folder: manifests have no others then.
  std::vector<Artifact> others;

  std::string pathOf(const std::string &file) const { return folder + "/" + file; }
};

/// Reads manifest and plans of the artifact in `folder`. The collective trace of each program
/// must have the hash in the manifest, and its plan must pass the certificate
/// (Certificate.h): an artifact that loads cannot deadlock or race.
Expected<Artifact> loadArtifact(const std::string &folder);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_ARTIFACT_H
