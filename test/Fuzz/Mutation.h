//===- Mutation.h - Random damage to the files of a package -----*- C++ -*-===//
//
// Byte mutations keep nothing intact; field mutations keep the JSON well-formed (of a safetensors file: the header) and
// so reach the checks behind the parser. The same generator state gives the same damage on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_TEST_FUZZ_MUTATION_H
#define SPMD_TEST_FUZZ_MUTATION_H

#include <cstdint>
#include <string>

namespace spmd::fuzz {

/// SplitMix64: the distributions of <random> differ between libraries, this does not.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// A number in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) { return next() % bound; }

private:
  uint64_t state;
};

/// A path that leaves the package, to a file that FuzzLoop watches.
constexpr char kBait[] = "../bait";

/// Damages `content` once; `isSafetensors` says that JSON starts after the 8 bytes of its size. Returns what was done,
/// for a person: "byte 17: flip bit 3", "/nodes/4/args/0/value: 9223372036854775807".
std::string mutate(std::string &content, bool isSafetensors, Random &random);

} // namespace spmd::fuzz

#endif // SPMD_TEST_FUZZ_MUTATION_H
