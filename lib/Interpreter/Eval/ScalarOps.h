//===- ScalarOps.h - what an op of arith or math computes -------*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_SCALAROPS_H
#define SPMD_LIB_INTERPRETER_EVAL_SCALAROPS_H

#include "ScalarCode.h"

namespace spmd::interp {

/// The lanes of the result, which has its kind and size; a constant has one. False: the op has no meaning here.
bool evaluateScalarOp(mlir::Operation &op, llvm::ArrayRef<const TypedLanes *> operands, TypedLanes &result);

/// `value` as an integer of this type: i1 is 0 or 1, others wrap.
int64_t wrapTo(mlir::Type type, int64_t value);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_SCALAROPS_H
