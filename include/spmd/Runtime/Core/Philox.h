//===- Philox.h - random numbers as a function of the element ---*- C++ -*-===//
//
// [Note: random numbers]
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), the generator of PyTorch's GPU kernels.
// The key is the seed. The counter is (element index, stream, step): the index counts the elements of the *global*
// tensor in row-major order, the stream numbers the places of the step that draw, and the step counts training steps.
// So what is drawn for an element depends on nothing else: not on ranks, sharding, threads, fusion, nor on what was
// drawn before.
//
// The same function is lib/Kernels/PhiloxEmitter.cpp (code for kernels) and python-bindings/spmd/philox.py (the
// reference); a test compares the three.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_PHILOX_H
#define SPMD_RUNTIME_CORE_PHILOX_H

#include <array>
#include <cstdint>

namespace spmd::runtime {

/// Multipliers, increments of the key, and number of rounds.
inline constexpr uint64_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint64_t kPhiloxIncrements[2] = {0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

/// The four 32-bit words of element `index` of draw `stream` in step `step`.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t step, uint64_t index, uint64_t stream) {
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                     static_cast<uint32_t>(stream), static_cast<uint32_t>(step)};
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    uint64_t product0 = kPhiloxMultipliers[0] * counter[0], product1 = kPhiloxMultipliers[1] * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += static_cast<uint32_t>(kPhiloxIncrements[0]);
    key1 += static_cast<uint32_t>(kPhiloxIncrements[1]);
  }
  return counter;
}

/// Uniform in [0, 1), a multiple of 2^-24: exact in f32.
inline double philoxUniform(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_PHILOX_H
