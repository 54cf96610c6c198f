//===- AttentionKernels.h - kernels of attention by unit --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_ATTENTIONKERNELS_H
#define SPMD_LIB_KERNELS_GPU_ATTENTIONKERNELS_H

#include "Device.h"
#include "GpuBuilder.h"

namespace spmd::kernel {

/// Emits the kernel of `op` for tensor cores; false, and nothing is emitted, where they cannot take it (f32, f64, rows
/// that cannot be read 16 bytes at a time, tiles that do not fit): then it is for fused multiply-adds.
bool emitAttentionWarps(GpuBuilder &b, AttentionOp op, const Device &device);
bool emitAttentionWarps(GpuBuilder &b, AttentionBackwardOp op, const Device &device);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_ATTENTIONKERNELS_H
