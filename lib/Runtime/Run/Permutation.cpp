//===- Permutation.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Run/Permutation.h"
#include "spmd/Runtime/Core/Philox.h"

static constexpr int kRounds = 6;

uint64_t spmd::runtime::permute(uint64_t index, uint64_t size, uint64_t seed, uint64_t epoch) {
  int bits = 1; // of each half
  while (bits < 31 && (uint64_t(1) << (2 * bits)) < size)
    ++bits;
  uint64_t mask = (uint64_t(1) << bits) - 1;
  do {
    uint64_t left = index >> bits, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      uint64_t mixed = philox(seed, epoch, right, static_cast<uint64_t>(round))[0];
      uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    index = (left << bits) | right;
  } while (index >= size);
  return index;
}
