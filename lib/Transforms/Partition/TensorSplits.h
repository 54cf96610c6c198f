//===- TensorSplits.h - ops that a cut dimension takes apart ----*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_TENSORSPLITS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_TENSORSPLITS_H

#include "States.h"

namespace spmd::partition {

/// Where the op's rule asks for a dimension whole that is cut, and simpler ops that compute the same do not, replaces
/// it by these, before it; true if it did. Means become sums, softmax a largest value, a sum and arithmetic, and the
/// bias of a product whose summands are cut is added apart.
bool splitForParts(mlir::Operation *op, llvm::function_ref<AxisState(mlir::Value)> getState);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_TENSORSPLITS_H
