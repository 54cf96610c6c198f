//===- RowValues.h - what gathers, scatters and sorts compute ----*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_ROWVALUES_H
#define SPMD_LIB_KERNELS_ROWVALUES_H

#include "CodeBuilder.h"

namespace spmd::kernel {

/// Number `i` of the row numbers at `pointer`, a tensor of `type`, as i64.
mlir::Value loadRowId(CodeBuilder &b, mlir::Value pointer, mlir::Type type, mlir::Value i);

/// low <= value < high.
mlir::Value isWithin(CodeBuilder &b, mlir::Value value, mlir::Value low, mlir::Value high);

/// What a row holds after `value` is scattered onto `old` (for `set` null will do).
mlir::Value combineRows(CodeBuilder &b, ScatterKind kind, mlir::Value old, mlir::Value value);

/// Whether rows are scattered in f32 and rounded once: sums and products of narrow floats.
bool combinesInF32(ScatterRowsOp op);

/// An element of a row that is sorted and the place in the row from which it comes (an integer of any width).
struct SortEntry {
  mlir::Value value, index;
};

/// Whether `x` comes before `y` in the sorted row: not-a-number is greatest, and equal elements keep their order, so no
/// two entries are equal and any sort gives what a stable one does.
mlir::Value isBefore(CodeBuilder &b, bool descending, SortEntry x, SortEntry y);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_ROWVALUES_H
