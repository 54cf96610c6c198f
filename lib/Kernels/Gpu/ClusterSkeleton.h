//===- ClusterSkeleton.h - how a cluster's points meet threads --*- C++ -*-===//
//
// [Note: skeletons of a cluster on GPUs]
// The dims of a cluster are grid dims, whose points are shared out, and nest dims, which a skeleton loops over: those a
// reduction runs over, and sequential ones that a result does not have.
//
// Threads: a thread owns `width` points side by side along the last grid dim (the lanes) and runs the nest alone: no
// reduction runs along the lanes, so elementwise clusters, sums over rows and small windows need no other thread. Sums
// come in the order of the CPU's, to the bit.
//
// Columns: as threads, where few columns are summed over many rows. The threads of a block share out the rows as well,
// and add up what they have in a fixed order.
//
// Rows: the last dim is reduced over. A group of threads owns a point of the grid dims and shares out the last dim,
// `width` positions at a time; a reduction over it ends with a fixed tree over the group. The group is a warp, several
// of which make a block, or a block. A thread meets the same positions in every pass, so what it has loaded it keeps.
//
// Tiles: an operand lies side by side along another dim than the results. A block reads 32 x 32 of it along its own dim
// and turns it in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_CLUSTERSKELETON_H
#define SPMD_LIB_KERNELS_GPU_CLUSTERSKELETON_H

#include "../ClusterValues.h"
#include "GpuEmitters.h"

namespace spmd::kernel {

/// What the skeletons share.
class ClusterSkeleton : public ClusterValues {
public:
  ClusterSkeleton(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments, const Device &device);

protected:
  int64_t getAlignment(mlir::AffineMap map, mlir::Type element, int64_t width) override;
  /// The most elements (a power of two) that one access of 16 bytes along `dim` has, for every operand and result that
  /// lies side by side along it, and that divide the dim; 1 when a result is not side by side.
  int64_t getWidth(unsigned dim) const;
  /// Sets the positions of `gridDims` to those of point `flat`, counted in row-major order.
  void setPosition(mlir::Value flat, llvm::ArrayRef<unsigned> gridDims);

  /// The same for item `item` of `items`: `width` points side by side along the lane dim, which is the last grid dim.
  void setItem(mlir::Value item, int64_t items, int64_t width);

  /// Roots of one stage at a level of the nest. Reductions that do not need its loop come before it, as it may use
  /// them; stores after it, as it may still read what they overwrite.
  struct LevelStep {
    Roots before, inside, after;
  };
  llvm::SmallVector<LevelStep> getSteps(unsigned level, const Roots &roots) const;

  /// Level of `nest` whose loop is the outermost that `reduce` runs over.
  unsigned getLevel(ReduceOp reduce) const;

  GpuBuilder &b;
  const Device &device;
  mlir::Value block;
  llvm::SmallVector<unsigned> gridDims;
};

/// Dims that a reduction of `op` runs over, and sequential dims that a result does not have.
llvm::SmallVector<unsigned> getNestDims(ClusterOp op);

/// The kernel of a cluster as simplifyCluster leaves it; returns its launch shape.
mlir::FailureOr<LaunchShape> emitThreads(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                         const Device &device);
mlir::FailureOr<LaunchShape> emitGroups(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                        const Device &device);
/// Whether a cluster is sums of so few columns over so many rows that threads are to share columns.
bool hasFewColumns(ClusterOp op, const Device &device);
mlir::FailureOr<LaunchShape> emitColumns(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                         const Device &device);
/// Whether a cluster without reductions reads an operand across the results.
bool isTransposing(ClusterOp op);
mlir::FailureOr<LaunchShape> emitTiles(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                       const Device &device);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_CLUSTERSKELETON_H
