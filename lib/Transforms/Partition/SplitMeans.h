//===- SplitMeans.h - means as sums and divisions ---------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_SPLITMEANS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_SPLITMEANS_H

#include "mlir/IR/Builders.h"

namespace spmd::partition {

/// How many elements a sum has: those of `of` in `dims`, less `correction`, though not less than none. On the present
/// shapes this is `number`.
struct Count {
  mlir::Value of;
  llvm::SmallVector<int64_t> dims;
  double correction;
  mlir::Attribute number;
};

/// The op that divides a sum by a count, which is a constant of the present shapes or computed when the step runs.
using DivideByCount = llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, mlir::Value sum, const Count &)>;

/// `sum` divided by the number that the present shapes say.
mlir::Operation *divideByConstant(mlir::OpBuilder &builder, mlir::Value sum, const Count &count);

/// The op is a mean, or divides by the count of one.
bool isMean(mlir::Operation *op);

/// Replaces such an op by sums and divisions: it is gone then, or reduces by a sum. Of any other op nothing.
void splitMean(mlir::Operation *op, DivideByCount divide);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_SPLITMEANS_H
