//===- Report.h - What was compiled, in tables ------------------*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_REPORT_H
#define SPMD_LIB_COMPILER_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "spmd/Pipelines/Target.h"
#include "spmd/Runtime/Core/PlanReport.h"
#include "llvm/Support/raw_ostream.h"

namespace spmd {

/// The report of a module after phase `plan`, compiled for `target`.
mlir::FailureOr<runtime::PlanReport> makeReport(mlir::ModuleOp module, const Target &target);

/// Prints shard units, collectives per step with their bytes, and the arena by class; of a step that is only planned
/// also the tensors at the peak and what every rank computes whole.
void printReport(const runtime::PlanReport &report, bool isPlanned, llvm::raw_ostream &os);

/// By how much the arena exceeds `budget`, and what takes the bytes.
std::string formatExcess(const runtime::PlanReport &report, int64_t budget);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_REPORT_H
