//===- PlanBytes.h - Planning again, to compare -----------------*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_PLANBYTES_H
#define SPMD_LIB_COMPILER_PLANBYTES_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace spmd {

/// Runs the phases after `from` up to `to`; errors are dropped.
mlir::LogicalResult runSilently(mlir::ModuleOp module, const PipelineOptions &options, Phase from, Phase to,
                                bool verifies = true);

/// Bytes of the arena of `module`, which is after phase `from`, with `options`; none when it cannot be planned with them.
std::optional<int64_t> planBytes(mlir::ModuleOp module, const PipelineOptions &options, Phase from);

/// A placed plan that is compared with others of the same step.
struct ComparedPlan {
  /// Of the arena of a rank.
  int64_t bytes = 0;
  /// The step on the reference machine (spmd/Cost).
  double seconds = 0;
};

/// The plan of `module`, which is after phase `from`. No verifier runs: the plan that is chosen goes through the
/// pipeline again. None when the step cannot be planned. `withTime`: the seconds are wanted, too.
std::optional<ComparedPlan> comparePlan(mlir::ModuleOp module, const PipelineOptions &options, Phase from,
                                        bool withTime);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_PLANBYTES_H
