//===- SharedTile.h - rows in shared memory ---------------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_SHAREDTILE_H
#define SPMD_LIB_KERNELS_GPU_SHAREDTILE_H

#include "mlir/IR/Value.h"

namespace spmd::kernel {

/// Rows in shared memory, `stride` elements apart.
struct SharedTile {
  mlir::Value pointer;
  int64_t stride;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_SHAREDTILE_H
