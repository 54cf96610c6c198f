//===- Mutant.h - A mutated artifact on disk ----------------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMDMUTATE_MUTANT_H
#define SPMD_TOOLS_SPMDMUTATE_MUTANT_H

#include "Mutation.h"
#include "spmd/Runtime/Core/Status.h"

#include <string>

namespace spmd::mutation {

/// What was done to an artifact.
struct Mutant {
  const MutationClass *mutationClass;
  std::string done;
};

/// Mutates a program of the artifact, by its place in the manifest, and writes manifest.json and the plan, with hashes
/// that fit, to the folder `target`. An empty `className` takes one at random. An error when the program
/// has no place for such a change.
runtime::Expected<Mutant> writeMutant(const std::string &artifact, const std::string &target, size_t program,
                                      const std::string &className, uint64_t seed);

} // namespace spmd::mutation

#endif // SPMD_TOOLS_SPMDMUTATE_MUTANT_H
