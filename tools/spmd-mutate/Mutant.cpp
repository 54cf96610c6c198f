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

/// The manifest as if program `number` were the only one: what its entry has stands in place of the first one's.
static Json manifestOf(const Json &manifest, size_t number) {
  Json own = manifest;
  own["programs"] = Json::array({manifest["programs"][number]});
  if (number > 0)
    for (auto &[key, value] : manifest["programs"][number].items())
      if (manifest.contains(key))
        own[key] = value;
  return own;
}

/// Puts what manifestOf gave, and was changed, back.
static void putBack(const Json &own, size_t number, Json &manifest) {
  Json &entry = manifest["programs"][number];
  entry = own["programs"][0];
  for (auto &[key, value] : own.items())
    if (key != "programs")
      (number > 0 && entry.contains(key) ? entry : manifest)[key] = value;
}

Expected<Mutant> spmd::mutation::writeMutant(const std::string &artifact, const std::string &target, size_t number,
                                             const std::string &className, uint64_t seed) {
  Expected<Json> manifest = readJson(artifact + "/manifest.json");
  if (!manifest)
    return manifest.error();
  if (number >= (*manifest)["programs"].size())
    return Status::badInput("'" + artifact + "' has no first step of its own");
  std::string planName = (*manifest)["programs"][number]["plan"];
  Expected<Json> plan = readJson(artifact + "/" + planName);
  if (!plan)
    return plan.error();
  Program program = {manifestOf(*manifest, number), std::move(*plan)};

  Mutant mutant = mutate(program, className, seed);
  if (mutant.done.empty())
    return Status::badInput("'" + artifact + "' has no place for a mutation of class '" + className + "'");

  std::string planText = program.plan.dump();
  putHashes(program, planText);
  if (Status status = writeFile(target + "/" + planName, planText); !status.ok())
    return status;
  putBack(program.manifest, number, *manifest);
  if (Status status = writeFile(target + "/manifest.json", manifest->dump()); !status.ok())
    return status;
  return mutant;
}
