//===- PlanBytes.h - Planning again, to compare -----------------*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_PLANBYTES_H
#define SPMD_LIB_COMPILER_PLANBYTES_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace spmd {

/// Runs the phases after `from` up to `to`; nothing is said of what fails.
mlir::LogicalResult runSilently(mlir::ModuleOp module, const PipelineOptions &options, Phase from, Phase to);

/// Bytes of the arena of `module`, which is after phase `from`, with `options`; none when it cannot be planned with them.
std::optional<int64_t> planBytes(mlir::ModuleOp module, const PipelineOptions &options, Phase from);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_PLANBYTES_H
