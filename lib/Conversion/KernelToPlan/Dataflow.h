//===- Dataflow.h - The step in values, for the certificate -----*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_DATAFLOW_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_DATAFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace spmd {

/// Adds, before `step`, a `plan.dataflow` with what it computes. It is made from the ops alone: that the plan does the
/// same with bytes, streams and waits is what the certificate then shows.
void addDataflow(mlir::func::FuncOp step);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_DATAFLOW_H
