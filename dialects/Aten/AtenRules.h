//===- AtenRules.h - Bodies of the ops' interface methods -------*- C++ -*-===//
//
// The functions that `rule`, `flops` and `localizer` in the .td files name.
// They read operands, results and attributes through the generic Operation
// interface, so that one function serves a family.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENRULES_H
#define SPMD_DIALECTS_ATEN_ATENRULES_H

#include "dialects/Aten/ShardingRule.h"
#include "mlir/IR/Operation.h"

namespace spmd::aten {

// Sharding rules.

/// No rule: the op runs on replicated operands only.
llvm::FailureOr<ShardingRule> noRule(mlir::Operation *op);

/// Operands are broadcast against the result, aligned at the right.
llvm::FailureOr<ShardingRule> pointwiseRule(mlir::Operation *op, Linearity linearity = Linearity::none,
                                            llvm::ArrayRef<unsigned> multilinearOperands = {});

/// A cast is linear unless it rounds to an integer or bool.
llvm::FailureOr<ShardingRule> castRule(mlir::Operation *op);

/// Dimensions as letters, operands separated by commas: "mk,kn->mn". A letter
/// that the results lack is summed over.
llvm::FailureOr<ShardingRule> einsumRule(mlir::Operation *op, llvm::StringRef dims,
                                         Linearity linearity = Linearity::none,
                                         llvm::ArrayRef<unsigned> multilinearOperands = {});

/// List ops: each list position is a pointwise op of its own.
llvm::FailureOr<ShardingRule> foreachRule(mlir::Operation *op);

// Cost.

double noFlops(mlir::Operation *op);
/// One operation per element of the first result, or of the first operand.
double resultElements(mlir::Operation *op);
double operandElements(mlir::Operation *op);
/// 2 m n k of a matrix product whose last two operands are the matrices.
double contractionFlops(mlir::Operation *op);

// Localization.

/// For ops without size attributes: nothing to do.
llvm::LogicalResult keepAttributes(mlir::Operation *op, mlir::TypeRange types);
/// Sets a list of sizes to the shape of the first result.
llvm::LogicalResult localizeShape(mlir::Operation *op, llvm::StringRef attr, mlir::TypeRange types);
/// A slice over a whole dimension follows that dimension's local size.
llvm::LogicalResult localizeSlice(mlir::Operation *op, mlir::TypeRange types);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ATENRULES_H
