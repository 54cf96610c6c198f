//===- Roles.h - between global tensors and ranks' arguments ----*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_ROLES_H
#define SPMD_LIB_INTERPRETER_ROLES_H

#include "spmd/Interpreter/Interpreter.h"

namespace spmd::interp {

/// The role of an argument or result, null with a diagnostic if it has none.
mlir::Attribute getArgumentRole(mlir::func::FuncOp step, unsigned index);
mlir::Attribute getResultRole(mlir::func::FuncOp step, unsigned index);

/// The global tensors that a value of this role and type holds: one, or one per
/// segment of a shard unit.
mlir::FailureOr<llvm::SmallVector<GlobalTensor>> describeRole(mlir::Attribute role, mlir::RankedTensorType type,
                                                              mlir::Operation *scope);

/// Types of arguments and results with their sharding, which a program for kernels has as an attribute beside it.
mlir::RankedTensorType getArgumentType(mlir::func::FuncOp step, unsigned index);
mlir::RankedTensorType getResultType(mlir::func::FuncOp step, unsigned index);

/// Global values, in the order of `describeRole`, cut into the ranks' values.
mlir::FailureOr<PerRank> shard(mlir::Attribute role, mlir::RankedTensorType type, mlir::Operation *scope,
                               llvm::ArrayRef<Tensor> globals, const Mesh &mesh);

/// The inverse. An error at `scope` if ranks differ where they must not, or if
/// padding of a flat buffer is not zero.
mlir::FailureOr<llvm::SmallVector<Tensor>> unshard(mlir::Attribute role, mlir::RankedTensorType type,
                                                   mlir::Operation *scope, const PerRank &locals, const Mesh &mesh);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_ROLES_H
