//===- SortedGroups.h - Groups of sorted rows, by their ends ----*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PASSES_SORTEDGROUPS_H
#define SPMD_LIB_IMPORT_PASSES_SORTEDGROUPS_H

#include "IntegerRange.h"
#include "KnownIntegers.h"

#include "dialects/Aten/AtenIndexing.h"

namespace spmd {

/// The sort whose values `groups` is, for certain; null for anything else.
///
/// [Note: groups by their ends]
/// With rows sorted by the number of their group, all of which are in [0, G), counts[g] rows are of group g, group g
/// ends at ends[g], the sum of the first g + 1 counts, and row s is of group sum over g of (ends[g] <= s). That is the
/// sorted number of row s. Counts are those of the numbers, sorted or not: sum over s of (number[s] == g).
aten::SortStableOp findSortOfGroups(mlir::Value groups, llvm::ArrayRef<aten::SortStableOp> sorts, KnownIntegers &known,
                                    IntegerRanges &ranges);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_PASSES_SORTEDGROUPS_H
