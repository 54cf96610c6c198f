//===- KeepSums.h - gradients that are added up across later ----*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_KEEPSUMS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_KEEPSUMS_H

#include "Step.h"

namespace spmd::partition {

/// Adds the gradients that the captured step makes, of microbatches, up before it adds them to one that is there: they
/// are reduced together.
void addToSumsLast(mlir::func::FuncOp func);

/// Makes gradients that outlive the partitioned step sums that ranks across have summands of; [Note: sums across].
mlir::LogicalResult keepSumsAcross(const Step &step, mlir::func::FuncOp func);

/// Whether the op gives a summand of its result when ranks have summands of these operands, and all the others alike.
bool isLinearAcross(mlir::Operation *op, llvm::ArrayRef<unsigned> operands);

/// Whether the value is a unit's flat buffer of zeros, of which every chunk is a sum of zeros.
bool isPackOfZeros(mlir::Value value);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_KEEPSUMS_H
