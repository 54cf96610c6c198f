//===- Owned.cpp ----------------------------------------------------------===//

#include "Owned.h"

#include <cstring>

namespace spmd::runtime::cuda {

Expected<OwnEvent> OwnEvent::make(std::shared_ptr<const Gpu> gpu, unsigned flags) {
  Event event = nullptr;
  SPMD_CUDA_TRY(gpu->driver(), cuEventCreate, &event, flags);
  return OwnEvent(std::move(gpu), event);
}

Expected<OwnPinned> OwnPinned::make(std::shared_ptr<const Gpu> gpu, size_t bytes) {
  void *data = nullptr;
  SPMD_CUDA_TRY(gpu->driver(), cuMemHostAlloc, &data, bytes, 0);
  std::memset(data, 0, bytes);
  return OwnPinned(std::move(gpu), data);
}

} // namespace spmd::runtime::cuda
