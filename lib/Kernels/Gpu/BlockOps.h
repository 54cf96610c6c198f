//===- BlockOps.h - what the threads of a block do together ------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_BLOCKOPS_H
#define SPMD_LIB_KERNELS_GPU_BLOCKOPS_H

#include "GpuBuilder.h"

namespace spmd::kernel {

/// Combines a scalar over all `threads` (a power of two, at least a warp) of the block, by a fixed tree: the lanes of a
/// warp, then the warps. Every thread gets the result. There is one barrier; the shared memory that is used belongs to
/// this place in the code, so in a loop another barrier has to come between two turns.
mlir::Value reduceBlock(GpuBuilder &b, ReduceKind kind, mlir::Value value, int64_t threads);

/// Sums of an i32 over the threads of the block.
struct BlockScan {
  mlir::Value before; ///< over the threads before this one
  mlir::Value total;
};
/// As reduceBlock: one barrier, and one between two turns of a loop.
BlockScan scanBlock(GpuBuilder &b, mlir::Value value, int64_t threads);

/// The most elements (a power of two) of `bytes` bytes that one access of 16 bytes has and that divide `size`.
int64_t getAccessWidth(int64_t bytes, int64_t size);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_BLOCKOPS_H
