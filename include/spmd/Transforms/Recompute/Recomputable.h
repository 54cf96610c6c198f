//===- Recomputable.h - saved values in the order of their price -*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_RECOMPUTE_RECOMPUTABLE_H
#define SPMD_TRANSFORMS_RECOMPUTE_RECOMPUTABLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace spmd {

/// A value that forward keeps for backward, and that backward can compute again.
struct Recomputable {
  mlir::OpResult value;
  /// Bytes of it on a rank.
  int64_t bytes;
  /// Modelled time of computing it again.
  double seconds;
  /// No heavy op is repeated: a kernel of backward can write the value beside its own results.
  bool isRebuilt;
};

/// The values that can be computed again, cheapest first by seconds per byte; equal prices in the order of the program.
/// The first n of them can be computed again for every n. `step` has been through phase decompose.
std::vector<Recomputable> findRecomputable(mlir::func::FuncOp step);

/// Marks these values for spmd-recompute-values.
void markRecomputed(llvm::ArrayRef<Recomputable> values);
/// Removes the marks.
void unmarkRecomputed(llvm::ArrayRef<Recomputable> values);

} // namespace spmd

#endif // SPMD_TRANSFORMS_RECOMPUTE_RECOMPUTABLE_H
