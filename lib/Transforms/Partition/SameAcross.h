//===- SameAcross.h - gradients that ranks do not sum ------------*- C++ -*-===//
//
// Why a gradient of [Note: sums across] is no sum over ranks: something is added to it that all ranks compute alike.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_SAMEACROSS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_SAMEACROSS_H

#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/MapVector.h"

namespace spmd::partition {

/// Values that all ranks across have, and what each rank has of them.
using Sums = llvm::MapVector<mlir::Value, mlir::Value>;

/// Whether `op` is pointwise and adds its operands.
bool isAddition(mlir::Operation *op);

/// Of a value that is computed from `sums` and is none: the op that adds something else to one; null where another op
/// is the reason.
mlir::Operation *findAdditionOfSame(mlir::Value value, const Sums &sums);

/// What `addition`, of `findAdditionOfSame`, adds, for an error: rows of the batch that all ranks compute with, with
/// their type, or else a term such as a penalty on parameters.
std::string describeSame(mlir::func::FuncOp func, mlir::Operation *addition, const Sums &sums);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_SAMEACROSS_H
