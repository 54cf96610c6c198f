//===- Device.h - GPUs that kernels are generated for ------------*- C++ -*-===//
//
// What the choice of grids and tiles reads, so that no skeleton has a number of a device in it. Compiling needs no GPU:
// these are the published facts of the device a chip name stands for.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_DEVICE_H
#define SPMD_LIB_KERNELS_GPU_DEVICE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace spmd::kernel {

/// Threads of a warp, on every device there is.
inline constexpr int64_t kWarpSize = 32;

/// One GPU. "SM" is a streaming multiprocessor, the core a block runs on from start to end.
struct Device {
  llvm::StringLiteral chip;    ///< "sm_90": what code is generated for
  llvm::StringLiteral product; ///< the data-center GPU of that chip, whose numbers these are
  int64_t sms;
  int64_t threadsPerBlock;
  int64_t threadsPerSM;
  int64_t blocksPerSM;
  int64_t registersPerSM; ///< of 32 bits
  int64_t registersPerThread;
  int64_t sharedBytesPerSM;    ///< of all blocks that run on an SM together
  int64_t sharedBytesPerBlock; ///< what one block may ask for (more than 48 KiB: opted in at load)
  int64_t reservedSharedBytes; ///< taken by the system from sharedBytesPerSM, for every block
  int64_t l2Bytes;
  int64_t bytesPerSecond; ///< of device memory, at its peak

  int64_t getWarpsPerSM() const { return threadsPerSM / kWarpSize; }
  /// Blocks that run on one SM together, each of `threads` threads with `sharedBytes` of shared memory and
  /// `registers` registers a thread; 0 when not even one does.
  int64_t getBlocksPerSM(int64_t threads, int64_t sharedBytes, int64_t registers = 32) const;
};

/// All devices, from the oldest chip on.
llvm::ArrayRef<Device> getDevices();

/// The device of `chip`, or null.
const Device *findDevice(llvm::StringRef chip);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_DEVICE_H
