//===- TranslateOperation.h - What a plan.compute computes -------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEOPERATION_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEOPERATION_H

#include "dialects/Plan/Plan.h"
#include "spmd/Runtime/Core/Operation.h"

namespace spmd {

/// Fails, with an error at `op`, for a type that the runtime does not have.
mlir::FailureOr<runtime::Operation> translateOperation(plan::ComputeOp op);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEOPERATION_H
