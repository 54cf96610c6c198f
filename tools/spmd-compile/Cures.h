//===- Cures.h - What brings a plan under its budget ------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_CURES_H
#define SPMD_TOOLS_SPMD_COMPILE_CURES_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

/// Plans `imported`, a module after phase `import`, with other options, and says what each makes of the arena: a table
/// of options and bytes. Nothing is claimed that was not planned.
std::string findCures(mlir::ModuleOp imported, const spmd::PipelineOptions &options, int64_t budget);

#endif // SPMD_TOOLS_SPMD_COMPILE_CURES_H
