//===- Device.cpp - GPUs that kernels are generated for -------------------===//

#include "Device.h"
#include "spmd/Kernels/Cubin.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace spmd::kernel {

// Per SM, block and thread: "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide, whose
// tuning guides for Ampere, Hopper and Blackwell give the shared memory again (164 and 228 KiB an SM, 1 KiB of it
// reserved per block, so 163 and 227 KiB for one). Whole devices: NVIDIA's data sheets and architecture white papers
// (A100 80 GB SXM: 108 SMs, 40 MB L2, 2,039 GB/s; H100 SXM5: 132 SMs, 50 MB, 3.35 TB/s; B200 SXM: 148 SMs, 126 MB,
// 8 TB/s). Other GPUs of the same chip run the same code, on grids chosen for these.
static constexpr Device kDevices[] = {
    {"sm_80", "A100 SXM", /*sms=*/108, /*threadsPerBlock=*/1024, /*threadsPerSM=*/2048, /*blocksPerSM=*/32,
     /*registersPerSM=*/65536, /*registersPerThread=*/255, /*sharedBytesPerSM=*/164 << 10,
     /*sharedBytesPerBlock=*/163 << 10, /*reservedSharedBytes=*/1 << 10, /*l2Bytes=*/40 << 20,
     /*bytesPerSecond=*/2'039'000'000'000},
    {"sm_90", "H100 SXM", /*sms=*/132, /*threadsPerBlock=*/1024, /*threadsPerSM=*/2048, /*blocksPerSM=*/32,
     /*registersPerSM=*/65536, /*registersPerThread=*/255, /*sharedBytesPerSM=*/228 << 10,
     /*sharedBytesPerBlock=*/227 << 10, /*reservedSharedBytes=*/1 << 10, /*l2Bytes=*/50 << 20,
     /*bytesPerSecond=*/3'350'000'000'000},
    {"sm_100", "B200 SXM", /*sms=*/148, /*threadsPerBlock=*/1024, /*threadsPerSM=*/2048, /*blocksPerSM=*/32,
     /*registersPerSM=*/65536, /*registersPerThread=*/255, /*sharedBytesPerSM=*/228 << 10,
     /*sharedBytesPerBlock=*/227 << 10, /*reservedSharedBytes=*/1 << 10, /*l2Bytes=*/126 << 20,
     /*bytesPerSecond=*/8'000'000'000'000},
};

ArrayRef<Device> getDevices() { return kDevices; }

const Device *findDevice(StringRef chip) {
  const Device *found = find_if(kDevices, [&](const Device &device) { return device.chip == chip; });
  return found == std::end(kDevices) ? nullptr : found;
}

int64_t Device::getBlocksPerSM(int64_t threads, int64_t sharedBytes, int64_t registers) const {
  // Registers are handed out to warps, 256 at a time; shared memory in units of 128 bytes.
  constexpr int64_t kRegisterUnit = 256, kSharedUnit = 128;
  if (threads < 1 || threads > threadsPerBlock || sharedBytes > sharedBytesPerBlock || registers > registersPerThread)
    return 0;
  int64_t warps = divideCeil(threads, kWarpSize);
  int64_t ofBlock = static_cast<int64_t>(alignTo(sharedBytes, kSharedUnit)) + reservedSharedBytes;
  int64_t ofWarp = static_cast<int64_t>(alignTo(std::max<int64_t>(registers, 1) * kWarpSize, kRegisterUnit));
  return std::min({blocksPerSM, getWarpsPerSM() / warps, sharedBytesPerSM / ofBlock, registersPerSM / ofWarp / warps});
}

SmallVector<StringRef> getKernelChips() {
  return map_to_vector(getDevices(), [](const Device &device) -> StringRef { return device.chip; });
}

int64_t getMultiprocessors(StringRef chip) { return findDevice(chip)->sms; }

int64_t getCapability(StringRef chip) {
  int64_t capability = 0;
  (void)chip.substr(chip.find('_') + 1).getAsInteger(10, capability);
  return capability;
}

} // namespace spmd::kernel
