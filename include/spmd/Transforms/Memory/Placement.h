//===- Placement.h - Offsets for buffers with known lifetimes ---*- C++ -*-===//
//
// The static memory planner: gives each buffer an offset so that buffers that conflict never overlap, in few bytes.
// Pure numbers in, numbers out.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_TRANSFORMS_MEMORY_PLACEMENT_H
#define SPMD_TRANSFORMS_MEMORY_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <vector>

namespace spmd::memory {

/// A buffer to be placed. `first` and `last` are the program positions of its first and last use, inclusive.
struct BufferRequest {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t alignment = 1; ///< of its own, where it is more than that of all
};

/// Offsets for every request, the bytes that hold them all, and the name of the order and fit that found them.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
  llvm::StringRef strategy;
};

/// Places `requests` at multiples of `alignment`, or of their own. `conflicts` has for each those that it may share no
/// byte with: all whose positions overlap its own, and more where order is not certain; j has i if i has j. Several
/// greedy orders are tried with two fits, and the first that needs the fewest bytes is kept; `lowerBound`, which none
/// can go below, ends the search early. Deterministic.
Placement placeBuffers(llvm::ArrayRef<BufferRequest> requests, llvm::ArrayRef<std::vector<unsigned>> conflicts,
                       int64_t alignment, int64_t lowerBound = 0);

} // namespace spmd::memory

#endif // SPMD_TRANSFORMS_MEMORY_PLACEMENT_H
