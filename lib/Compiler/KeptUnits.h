//===- KeptUnits.h - Mode default: what a budget lets units keep -*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_KEPTUNITS_H
#define SPMD_LIB_COMPILER_KEPTUNITS_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd {

/// Closes the choice that units of mode `default` leave open in `module`, which is after phase `units`: as many of them
/// keep gathered parameters until backward as fit into an arena of `budget` bytes, most bytes on the wire saved for a
/// byte of memory first. An error when there are such units and no budget.
///
/// [Note: mode default] From fully_shard, each kept unit saves a gather for each use after the first, and what it costs
/// is its gathered buffer in between. shard_optimizer and replicate send as many bytes as a kept unit does and take more
/// memory, so they are never better. Units with most gathers come first; among equals, those that hold their buffer over
/// the fewest ops: a network's last layers, whose backward comes next. What fits is no estimate: sets of units are
/// planned, the longest beginning of the list that fits is found by bisection, and behind a unit that does not fit only
/// smaller ones are tried.
mlir::LogicalResult chooseKeptUnits(mlir::ModuleOp module, const PipelineOptions &options,
                                    std::optional<int64_t> budget);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_KEPTUNITS_H
