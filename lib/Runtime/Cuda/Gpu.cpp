//===- Gpu.cpp ------------------------------------------------------------===//

#include "Gpu.h"

#include <algorithm>

namespace spmd::runtime::cuda {

static std::string formatUuid(const DeviceUuid &uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    for (int shift : {4, 0})
      text += "0123456789abcdef"[uuid.bytes[i] >> shift & 15];
  }
  return text;
}

Expected<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const Driver> driver, int ordinal) {
  std::shared_ptr<Gpu> gpu(new Gpu);
  gpu->loaded = std::move(driver);
  const Driver &d = gpu->driver();
  gpu->number = ordinal;
  SPMD_CUDA_TRY(d, cuDeviceGet, &gpu->device, ordinal);
  char name[128] = "";
  SPMD_CUDA_TRY(d, cuDeviceGetName, name, sizeof name, gpu->device);
  gpu->title = name;
  DeviceUuid uuid = {};
  SPMD_CUDA_TRY(d, cuDeviceGetUuid, &uuid, gpu->device);
  gpu->id = formatUuid(uuid);
  int major = 0, minor = 0, hasVirtualMemory = 0;
  SPMD_CUDA_TRY(d, cuDeviceGetAttribute, &major, kComputeCapabilityMajor, gpu->device);
  SPMD_CUDA_TRY(d, cuDeviceGetAttribute, &minor, kComputeCapabilityMinor, gpu->device);
  SPMD_CUDA_TRY(d, cuDeviceGetAttribute, &hasVirtualMemory, kVirtualMemoryManagement, gpu->device);
  SPMD_CUDA_TRY(d, cuDeviceGetAttribute, &gpu->numMultiprocessors, kMultiprocessorCount, gpu->device);
  gpu->capability = 10 * major + minor;
  if (!hasVirtualMemory)
    return Status::badInput("GPU " + std::to_string(ordinal) + " (" + gpu->title +
                            ") has no virtual memory management, which arenas need");
  SPMD_CUDA_TRY(d, cuDevicePrimaryCtxRetain, &gpu->context, gpu->device);
  if (Status status = gpu->use(); !status.ok())
    return status;
  Expected<StreamHandle> stream = gpu->makeStream(kLastPlace);
  if (!stream)
    return stream.error();
  gpu->main = *stream;
  return gpu;
}

Gpu::~Gpu() {
  if (!context)
    return;
  if (main && use().ok())
    (void)loaded->cuStreamDestroy(main);
  (void)loaded->cuDevicePrimaryCtxRelease(device);
}

/// What was set last: setting what is set already costs a call for each rank and step.
static thread_local Context current = nullptr;

Status Gpu::use() const { return current == context ? Status::success() : useAgain(); }

Status Gpu::useAgain() const {
  SPMD_CUDA_TRY(*loaded, cuCtxSetCurrent, context);
  current = context;
  return Status::success();
}

Expected<StreamHandle> Gpu::makeStream(int64_t place) const {
  int least = 0, greatest = 0;
  SPMD_CUDA_TRY(*loaded, cuCtxGetStreamPriorityRange, &least, &greatest);
  StreamHandle stream = nullptr;
  // The greatest priority is the least number.
  auto priority = static_cast<int>(std::min<int64_t>(greatest + place, least));
  SPMD_CUDA_TRY(*loaded, cuStreamCreateWithPriority, &stream, kStreamNonBlocking, priority);
  return stream;
}

} // namespace spmd::runtime::cuda
