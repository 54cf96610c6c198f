//===- GroupSize.h - symbols that ops of the dialect name -------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_GROUPSIZE_H
#define SPMD_DIALECTS_SPMD_GROUPSIZE_H

#include "dialects/Spmd/Spmd.h"

namespace spmd {

/// Ranks in the group `axes` of `mesh`; an error on `op` when the mesh or an
/// axis does not exist.
mlir::FailureOr<int64_t> getGroupSize(mlir::SymbolTableCollection &tables, mlir::Operation *op,
                                      mlir::FlatSymbolRefAttr mesh, mlir::ArrayAttr axes);

/// The shard unit `unit`; an error on `op` when it does not exist.
mlir::FailureOr<ShardUnitOp> getUnit(mlir::SymbolTableCollection &tables, mlir::Operation *op,
                                     mlir::FlatSymbolRefAttr unit);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_GROUPSIZE_H
