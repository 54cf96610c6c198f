//===- SimplifyCluster.h - a cluster with fewer dims -------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_SIMPLIFYCLUSTER_H
#define SPMD_LIB_KERNELS_SIMPLIFYCLUSTER_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/OwningOpRef.h"

namespace spmd::kernel {

/// A detached copy of `op` with the same parallel iterations, without dims of size 1 and with adjacent dims merged
/// where every map allows it.
mlir::OwningOpRef<ClusterOp> simplifyCluster(ClusterOp op);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_SIMPLIFYCLUSTER_H
