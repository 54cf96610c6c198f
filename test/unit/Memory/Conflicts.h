//===- Conflicts.h - Buffers of a test that may share no byte -----*- C++ -*-===//
#ifndef SPMD_TEST_UNIT_MEMORY_CONFLICTS_H
#define SPMD_TEST_UNIT_MEMORY_CONFLICTS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <vector>

namespace spmd::memory {

/// For each of `size` buffers those that it conflicts with; `conflict` is asked of each pair.
inline std::vector<std::vector<unsigned>> findConflicts(unsigned size,
                                                        llvm::function_ref<bool(unsigned, unsigned)> conflict) {
  std::vector<std::vector<unsigned>> conflicts(size);
  for (unsigned i = 0; i != size; ++i)
    for (unsigned j = i + 1; j != size; ++j)
      if (conflict(i, j)) {
        conflicts[i].push_back(j);
        conflicts[j].push_back(i);
      }
  return conflicts;
}

} // namespace spmd::memory

#endif // SPMD_TEST_UNIT_MEMORY_CONFLICTS_H
