//===- Permutation.h - An order of samples, one at a time --------*- C++ -*-===//

#ifndef SPMD_RUNTIME_RUN_PERMUTATION_H
#define SPMD_RUNTIME_RUN_PERMUTATION_H

#include <cstdint>

namespace spmd::runtime {

/// Where number `index` of [0, size) goes in the order of `epoch`: a permutation for each seed and epoch, without a list.
/// A Feistel network over the next power of four, walked until it is inside (Black and Rogaway, "Ciphers with arbitrary
/// finite domains", 2002), with Philox for its rounds.
uint64_t permute(uint64_t index, uint64_t size, uint64_t seed, uint64_t epoch);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_PERMUTATION_H
