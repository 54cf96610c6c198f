//===- BlockOps.h - what the threads of a block do together ------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_BLOCKOPS_H
#define SPMD_LIB_KERNELS_GPU_BLOCKOPS_H

#include "GpuBuilder.h"

namespace spmd::kernel {

/// Combines scalars over all `threads` (whole warps) of the block, or of each of `teams` in it, by their kinds and by a
/// fixed tree: the lanes of a warp, then the warps. Every thread gets the results. There is one barrier for all; the
/// shared memory that is used belongs to this place in the code, so `isInLoop` puts another one before it. It needs
/// none in a loop that tells its `turn`, a number that is one more each time: turns take two places by turns.
llvm::SmallVector<mlir::Value> reduceBlock(GpuBuilder &b, llvm::ArrayRef<ReduceKind> kinds,
                                           llvm::ArrayRef<mlir::Value> values, int64_t threads, bool isInLoop,
                                           int64_t teams = 1, mlir::Value turn = {});
/// One scalar, outside of loops.
mlir::Value reduceBlock(GpuBuilder &b, ReduceKind kind, mlir::Value value, int64_t threads);

/// Sums of an i32 over the threads of the block.
struct BlockScan {
  mlir::Value before; ///< over the threads before this one
  mlir::Value total;
};
/// One barrier; in a loop the caller puts another one between two turns.
BlockScan scanBlock(GpuBuilder &b, mlir::Value value, int64_t threads);

/// The most elements (a power of two) of `bytes` bytes that one access of 16 bytes has and that divide `size`.
int64_t getAccessWidth(int64_t bytes, int64_t size);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_BLOCKOPS_H
