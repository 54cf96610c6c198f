//===- RecomputedValues.h - What backward computes again -*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_RECOMPUTEDVALUES_H
#define SPMD_LIB_COMPILER_RECOMPUTEDVALUES_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace spmd {

/// The cheapest plan that recomputation alone gives, where even that exceeds the budget.
struct RecomputedPlan {
  int64_t values;
  int64_t bytes;
};

/// Marks in `module`, which is after phase `decompose`, as few saved values as bring the arena under `budget` bytes, so
/// that backward computes them again (spmd-recompute-values). Nothing is marked if the plan fits as it is, or if no
/// number of values makes it fit; then the result is the plan that computes all of them again.
///
/// [Note: a budget] Saved values are in one order, cheapest first by modelled seconds per byte, and the order does not
/// depend on the budget. A budget takes the shortest beginning of it that fits: a larger budget never takes more. Whether
/// a beginning fits is no estimate: it is planned. The first one that is tried follows from the bytes of the values. The
/// last value may then make way for a later one that is smaller.
std::optional<RecomputedPlan> chooseRecomputedValues(mlir::ModuleOp module, const PipelineOptions &options,
                                                     int64_t budget);

/// Without a budget: marks in `module`, which is after phase `decompose`, the cheapest saved values that kernels of
/// backward rebuild beside their own results, if the placed arena is smaller by 1 GiB, or by 5 % of it where that is
/// 256 MiB or more, and the modelled step is at most 0.6 % longer. The floor keeps the plans of small steps, whose memory
/// nobody misses, and the time of planning them.
void tradeRecomputedValues(mlir::ModuleOp module, const PipelineOptions &options);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_RECOMPUTEDVALUES_H
