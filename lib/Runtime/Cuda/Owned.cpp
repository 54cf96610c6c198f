//===- Owned.cpp ----------------------------------------------------------===//

#include "Owned.h"

#include <cstring>

namespace spmd::runtime::cuda {

Expected<OwnEvent> OwnEvent::make(std::shared_ptr<const Gpu> gpu, unsigned flags) {
  OwnEvent own;
  SPMD_CUDA_TRY(gpu->driver(), cuEventCreate, &own.event, flags);
  own.gpu = std::move(gpu);
  return own;
}

OwnEvent::~OwnEvent() {
  if (event && gpu->use().ok())
    (void)gpu->driver().cuEventDestroy(event);
}

Expected<OwnPinned> OwnPinned::make(std::shared_ptr<const Gpu> gpu, size_t bytes) {
  OwnPinned own;
  SPMD_CUDA_TRY(gpu->driver(), cuMemHostAlloc, &own.data, bytes, 0);
  own.gpu = std::move(gpu);
  std::memset(own.data, 0, bytes);
  return own;
}

OwnPinned::~OwnPinned() {
  if (data && gpu->use().ok())
    (void)gpu->driver().cuMemFreeHost(data);
}

} // namespace spmd::runtime::cuda
