//===- CheckUnitOptions.h - options that have code --------------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_UNITS_CHECKUNITOPTIONS_H
#define SPMD_TRANSFORMS_UNITS_CHECKUNITOPTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd {

/// An error for a shard unit whose options nothing after the units keeps: groups of ranks that keep gathered
/// parameters. A plan without them would be another program's.
llvm::LogicalResult checkUnitOptions(mlir::ModuleOp module);

} // namespace spmd

#endif // SPMD_TRANSFORMS_UNITS_CHECKUNITOPTIONS_H
