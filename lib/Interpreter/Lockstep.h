//===- Lockstep.h - all ranks execute op k, then op k + 1 -------*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_LOCKSTEP_H
#define SPMD_LIB_INTERPRETER_LOCKSTEP_H

#include "spmd/Interpreter/Evaluator.h"
#include "spmd/Interpreter/Interpreter.h"

namespace spmd::interp {

class Lockstep {
public:
  Lockstep(mlir::func::FuncOp function, const Mesh &mesh, Options options);

  /// Every op must have an evaluator; names those that have none.
  mlir::LogicalResult checkSupported();

  /// The values that the function returns for these arguments.
  mlir::FailureOr<llvm::SmallVector<PerRank>> run(llvm::ArrayRef<PerRank> arguments);

  const Statistics &statistics() const { return stats; }
  Failure failureKind() const { return lastFailure; }

private:
  using Operands = llvm::SmallVector<PerRank>;

  mlir::LogicalResult execute(mlir::Operation &op);
  mlir::LogicalResult executeOnEachRank(mlir::Operation &op, const Operands &operands);
  mlir::LogicalResult define(mlir::Value value, PerRank tensors);
  mlir::LogicalResult checkReplicas(mlir::Value value, const PerRank &tensors);
  Operands takeOperands(mlir::Operation &op);
  void countFlops(mlir::Operation &op, const Operands &operands);
  mlir::LogicalResult fail(Failure kind) {
    lastFailure = kind;
    return mlir::failure();
  }

  mlir::func::FuncOp function;
  const Mesh &mesh;
  Options options;
  llvm::SmallVector<RankContext> contexts;
  llvm::DenseMap<mlir::OperationName, OperandGroups> groups;
  llvm::DenseMap<mlir::Value, PerRank> values;
  /// Results of started collectives, by handle.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<PerRank>> pending;
  llvm::DenseMap<mlir::Value, unsigned> remainingUses;
  Statistics stats;
  Failure lastFailure = Failure::running;
};

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_LOCKSTEP_H
