//===- Parts.h - dimensions that are sharded parts side by side -*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_PARTS_H
#define SPMD_LIB_TRANSFORMS_PARTITION_PARTS_H

#include "dialects/Spmd/Spmd.h"

namespace spmd::partition {

/// The states of the results of an op that puts sharded dimensions side by side,
/// or takes such parts out again; nothing for any other. The op may be the global
/// or a rank's: what counts are the rows of a part, as its types and attributes
/// know them. See [Note: parts].
std::optional<llvm::SmallVector<AxisState>> mapThroughParts(mlir::Operation *op, llvm::ArrayRef<AxisState> operands);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_PARTS_H
