//===- CheckIndex.h - Row numbers inside their tables ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_CHECKINDEX_H
#define SPMD_RUNTIME_TRAIN_CHECKINDEX_H

#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// Position of the first of `count` integers that is neither in [low, high) nor
/// `ignored`; -1 when there is none, or `data` are no integers.
int64_t findBadIndex(const void *data, DType dtype, int64_t count, int64_t low, int64_t high,
                     std::optional<int64_t> ignored);

/// Runs a check_index command, number `id` at `location`. The error names the op that takes the numbers,
/// where it comes from, the first bad number and its position; of truth values,
/// none of which may hold, what it is that may not be.
Status runCheckIndex(const CheckIndexCommand &check, int32_t id, const std::string &location, int64_t rank,
                     const void *ids);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_CHECKINDEX_H
