//===- Report.h - What was compiled, in a few lines -------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_REPORT_H
#define SPMD_TOOLS_SPMD_COMPILE_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

/// Prints shard units, collectives per step with their bytes, and the arena by class, of a module after phase `plan`.
void printReport(mlir::ModuleOp module, llvm::raw_ostream &os);

/// Checks the arena of a rank against `budget` bytes; an error names the buffers alive at the peak.
mlir::LogicalResult checkBudget(mlir::ModuleOp module, int64_t budget);

#endif // SPMD_TOOLS_SPMD_COMPILE_REPORT_H
