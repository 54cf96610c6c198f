//===- Owned.h - What of the driver's goes with who has it --------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_OWNED_H
#define SPMD_LIB_RUNTIME_CUDA_OWNED_H

#include "Gpu.h"

#include <utility>

namespace spmd::runtime::cuda {

/// An event of its own.
class OwnEvent {
public:
  static Expected<OwnEvent> make(std::shared_ptr<const Gpu> gpu, unsigned flags);
  OwnEvent() = default;
  OwnEvent(OwnEvent &&other) noexcept { swap(other); }
  OwnEvent &operator=(OwnEvent &&other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnEvent();
  Event get() const { return event; }
  explicit operator bool() const { return event != nullptr; }

private:
  void swap(OwnEvent &other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(event, other.event);
  }
  std::shared_ptr<const Gpu> gpu;
  Event event = nullptr;
};

/// Memory of the host that the GPU copies to.
class OwnPinned {
public:
  static Expected<OwnPinned> make(std::shared_ptr<const Gpu> gpu, size_t bytes);
  OwnPinned() = default;
  OwnPinned(OwnPinned &&other) noexcept { swap(other); }
  OwnPinned &operator=(OwnPinned &&other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnPinned();
  void *get() const { return data; }

private:
  void swap(OwnPinned &other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(data, other.data);
  }
  std::shared_ptr<const Gpu> gpu;
  void *data = nullptr;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_OWNED_H
