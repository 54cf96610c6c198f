//===- Emitters.h - loops of each kernel op ---------------------*- C++ -*-===//
//
// An emitter fills the function that its builder has started with the loops of its op, for iterations [begin, end).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_HOST_EMITTERS_H
#define SPMD_LIB_KERNELS_HOST_EMITTERS_H

#include "../EmitterTable.h"
#include "KernelBuilder.h"

namespace spmd::kernel {

using HostEmitters = EmitterTable<KernelBuilder>;

/// Adds the emitters of a file, Emit*.cpp.
#define SPMD_HOST_EMITTERS(FAMILY) void add##FAMILY##Emitters(HostEmitters &emitters);
#include "lib/Kernels/HostEmitters.inc"

/// Where a cluster finds its operands and results, and which iterations to run.
struct ClusterArguments {
  mlir::SmallVector<mlir::Value> operands, results;
  mlir::Value begin, end;
};

/// The loops of a cluster as simplifyCluster leaves it, without dims of size 1.
mlir::LogicalResult emitClusterLoops(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_EMITTERS_H
