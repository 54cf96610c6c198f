//===- GroupedValues.h - what grouped GEMMs compute -------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GROUPEDVALUES_H
#define SPMD_LIB_KERNELS_GROUPEDVALUES_H

#include "CodeBuilder.h"

namespace spmd::kernel {

/// The type that products of `element` are summed in: f32 for narrow floats.
mlir::Type getSumType(mlir::Type element);

/// Element `index` (`width` of them) as it is summed.
mlir::Value loadForSum(CodeBuilder &b, mlir::Value pointer, mlir::Type element, mlir::Value index, int64_t width = 1);
/// Rounds a sum to `element` and stores it.
void storeSum(CodeBuilder &b, mlir::Value sum, mlir::Type element, mlir::Value pointer, mlir::Value index);

/// sum + x * y, rounded once.
mlir::Value multiplyAdd(CodeBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// What `next` makes of `carried` where `condition` holds, `carried` elsewhere.
mlir::SmallVector<mlir::Value> advanceWhere(CodeBuilder &b, mlir::Value condition, mlir::ValueRange carried,
                                            llvm::function_ref<mlir::SmallVector<mlir::Value>()> next);

/// Where element (k, column) of the matrix of group `group` lies in b.
mlir::Value getMatrixIndex(CodeBuilder &b, GroupedGemmOp op, mlir::Value group, mlir::Value k, mlir::Value column);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GROUPEDVALUES_H
