//===- PaddedRows.h - rows whose end nobody writes or reads -----*- C++ -*-===//

#ifndef SPMD_DIALECTS_KERNEL_PADDEDROWS_H
#define SPMD_DIALECTS_KERNEL_PADDEDROWS_H

#include "dialects/Kernel/Kernel.h"
#include <optional>

namespace spmd::kernel {

/// Bytes to a multiple of which rows are padded at most: a cache line of a GPU.
constexpr int64_t kMostRowAlignment = 128;

/// A matrix of which the first `columns` elements of each row of `ld` are there.
struct PaddedRows {
  int64_t columns, ld;
};

/// The rows that result number `result` of a cluster writes; nothing where it writes all of its elements, or where
/// what it does not write is more than the padding of rows.
std::optional<PaddedRows> getPaddedRows(ClusterOp cluster, unsigned result);

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_PADDEDROWS_H
