//===- CopyPieces.h - pieces of a kernel.copy as clusters --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_COPYPIECES_H
#define SPMD_LIB_KERNELS_COPYPIECES_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/OwningOpRef.h"

namespace spmd::kernel {

/// The piece as a detached cluster of one operand (zeros: of none) that yields it. Its first dim, if any, is parallel.
mlir::OwningOpRef<ClusterOp> getPieceCluster(CopyOp op, PieceAttr piece);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_COPYPIECES_H
