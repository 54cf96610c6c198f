//===- Mutation.h - Plans that mean something else ----------------*- C++ -*-===//
//
// One change of one thing in a well-formed plan or in what binds it to names. Everything that a reader compares before
// it looks at meaning (hashes, the positions that waits name) is put right afterwards, so that a mutant is refused for
// what it computes, or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_TOOLS_SPMDMUTATE_MUTATION_H
#define SPMD_TOOLS_SPMDMUTATE_MUTATION_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spmd::mutation {

// Ordered: what is not changed is written as it was read.
using Json = nlohmann::ordered_json;

/// SplitMix64: the distributions of <random> differ between libraries, this does not.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// A number in [0, bound); bound > 0.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  /// An element of a list that is not empty.
  template <typename List>
  auto &pick(List &list) {
    return list[below(list.size())];
  }

private:
  uint64_t state;
};

/// One program of an artifact, as JSON.
struct Program {
  Json manifest, plan;

  Json &commands() { return plan["commands"]; }
  Json &buffers() { return plan["buffers"]; }
};

/// A kind of change.
struct MutationClass {
  const char *name;
  const char *what; ///< for people
  /// Why a mutant may run to the same bits; null: it must be refused.
  const char *harmless;
  /// Makes one change and says which, or nothing when the program has no place for it.
  std::optional<std::string> (*apply)(Program &program, Random &random);
};

/// All of them, in a fixed order.
const std::vector<MutationClass> &mutationClasses();

// Parts of the list above.
const std::vector<MutationClass> &referenceMutations();
const std::vector<MutationClass> &orderMutations();
const std::vector<MutationClass> &operationMutations();
const std::vector<MutationClass> &bindingMutations();
const std::vector<MutationClass> &repeatMutations();

/// A reference of a command, and what it is: "args/2", "send".
struct RefPlace {
  size_t command;
  std::string name;
  Json *ref;
};

/// The references of a command; pointers into it.
std::vector<RefPlace> refsOf(Program &program, size_t command);
/// The references of all commands.
std::vector<RefPlace> allRefs(Program &program);
/// The positions of the commands with this `op`.
std::vector<size_t> commandsOf(Program &program, const std::string &op);
/// The positions of the commands that launch a kernel.
std::vector<size_t> launchesOf(Program &program);
/// The positions of all collectives.
std::vector<size_t> collectivesOf(Program &program);

/// "command 17 (gemm)".
std::string nameCommand(Program &program, size_t command);
/// Writes `value` at `key` of an object and says so: "k: 16 becomes 8".
std::string setField(Json &object, const std::string &key, Json value);

} // namespace spmd::mutation

#endif // SPMD_TOOLS_SPMDMUTATE_MUTATION_H
