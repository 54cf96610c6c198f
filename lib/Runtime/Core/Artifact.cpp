//===- Artifact.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Certificate.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

using namespace spmd::runtime;

Expected<Artifact> spmd::runtime::loadArtifact(const std::string &folder) {
  Artifact artifact;
  artifact.folder = folder;
  std::string manifestPath = artifact.pathOf("manifest.json");
  Expected<std::string> text = readFile(manifestPath);
  if (!text)
    return text.error();
  Expected<Manifest> manifest = parseManifest("'" + manifestPath + "'", *text);
  if (!manifest)
    return manifest.error();
  artifact.manifest = std::move(*manifest);

  const ProgramEntry *program = nullptr;
  for (const ProgramEntry &entry : artifact.manifest.programs)
    if (entry.name == "train_step")
      program = &entry;
  if (!program)
    return Status::badInput("'" + manifestPath + "': /programs: has no program 'train_step'");

  std::string planPath = artifact.pathOf(program->plan);
  text = readFile(planPath);
  if (!text)
    return text.error();
  if (Status status = checkHash(planPath, *text, program->hash); !status.ok())
    return status;
  Expected<Plan> plan = parsePlan("'" + planPath + "'", *text);
  if (!plan)
    return plan.error();
  artifact.plan = std::move(*plan);

  artifact.traceHash = hashBytes(collectiveTrace(artifact.plan));
  if (formatHash(artifact.traceHash) != program->traceHash)
    return Status::badInput("'" + planPath + "': its collectives have the hash " + formatHash(artifact.traceHash) +
                            ", the manifest says " + program->traceHash +
                            ": manifest and plan are not of one compilation");
  Status certificate = checkCertificate(artifact.manifest, artifact.plan);
  if (!certificate.ok()) {
    certificate.message = "'" + planPath + "': " + certificate.message;
    return certificate;
  }
  return artifact;
}
