//===- AttentionMask.h - what the positions in a mask say -----------*- C++ -*-===//
//
// [Note: key windows]
// A mask is a scalar function of [batch, head, query, key]. What it says of positions alone is found by looking at the
// function: `key <= query`, `key > query - 4`, conjunctions and disjunctions of such, a choice between a number and
// -inf. The keys that query t may see then lie in a window that moves with t, and blocks of keys outside of it are
// neither loaded nor computed. A mask that is nothing but its window need not be computed either.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_KERNEL_ATTENTIONMASK_H
#define SPMD_DIALECTS_KERNEL_ATTENTIONMASK_H

#include "dialects/Kernel/Kernel.h"
#include <optional>

namespace spmd::kernel {

/// Keys that query t may see lie in [t + low, t + high].
struct KeyWindow {
  std::optional<int64_t> low, high;
  /// The mask says nothing else: every key in the window is seen, with nothing added.
  bool isExact = true;

  bool operator==(const KeyWindow &other) const {
    return low == other.low && high == other.high && isExact == other.isExact;
  }
};

/// The window of a mask; of an empty one everything, exactly.
KeyWindow getKeyWindow(mlir::Region &mask, AttentionSizesAttr sizes);

/// Pairs of a query and a key in its window, of one head.
int64_t countPairs(KeyWindow window, AttentionSizesAttr sizes);

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_ATTENTIONMASK_H
