//===- Mutant.cpp ---------------------------------------------------------===//

#include "Mutant.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Plan.h"

using namespace spmd::mutation;
using namespace spmd::runtime;

static Expected<Json> readJson(const std::string &path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return Status::badInput("'" + path + "' is no JSON");
  return json;
}

/// The hashes of the plan as it is now. One that cannot be read has no trace.
static void putHashes(Program &program, const std::string &planText) {
  Json &entry = program.manifest["programs"][0];
  if (entry.contains("hash"))
    entry["hash"] = formatHash(hashBytes(planText));
  if (Expected<Plan> plan = parsePlan("plan", planText))
    entry["trace_hash"] = formatHash(hashBytes(collectiveTrace(*plan)));
}

/// A program need not have a place for every class, nor a class one at every draw. What a class does with a seed does
/// not depend on how the class was chosen.
static Mutant mutate(Program &program, const std::string &className, uint64_t seed) {
  constexpr int kClasses = 50, kTries = 10;
  Random choice(seed);
  Mutant mutant = {};
  for (int drawn = 0; drawn < kClasses; ++drawn) {
    mutant.mutationClass = &choice.pick(mutationClasses());
    for (const MutationClass &named : mutationClasses())
      if (className == named.name)
        mutant.mutationClass = &named;
    Random random(seed);
    for (int attempt = 0; attempt < kTries; ++attempt)
      if (std::optional<std::string> done = mutant.mutationClass->apply(program, random)) {
        mutant.done = *done;
        return mutant;
      }
  }
  return mutant;
}

Expected<Mutant> spmd::mutation::writeMutant(const std::string &artifact, const std::string &target,
                                             const std::string &className, uint64_t seed) {
  Expected<Json> manifest = readJson(artifact + "/manifest.json");
  if (!manifest)
    return manifest.error();
  std::string planName = (*manifest)["programs"][0]["plan"];
  Expected<Json> plan = readJson(artifact + "/" + planName);
  if (!plan)
    return plan.error();
  Program program = {std::move(*manifest), std::move(*plan)};

  Mutant mutant = mutate(program, className, seed);
  if (mutant.done.empty())
    return Status::badInput("'" + artifact + "' has no place for a mutation of class '" + className + "'");

  std::string planText = program.plan.dump();
  putHashes(program, planText);
  if (Status status = writeFile(target + "/" + planName, planText); !status.ok())
    return status;
  if (Status status = writeFile(target + "/manifest.json", program.manifest.dump()); !status.ok())
    return status;
  return mutant;
}
