//===- Owned.h - What of the driver's goes with who has it --------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_OWNED_H
#define SPMD_LIB_RUNTIME_CUDA_OWNED_H

#include "Gpu.h"

#include <utility>

namespace spmd::runtime::cuda {

/// Something of the driver's that `Release` gives back, on the GPU that it is of. Moving swaps.
template <typename Handle, auto Driver::*Release>
class Owned {
public:
  Owned() = default;
  Owned(std::shared_ptr<const Gpu> gpu, Handle handle) : gpu(std::move(gpu)), handle(handle) {}
  Owned(Owned &&other) noexcept { swap(other); }
  Owned &operator=(Owned &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (handle && gpu->use().ok())
      (void)(gpu->driver().*Release)(handle);
  }
  Handle get() const { return handle; }
  explicit operator bool() const { return handle != nullptr; }

private:
  void swap(Owned &other) noexcept {
    std::swap(gpu, other.gpu);
    std::swap(handle, other.handle);
  }
  std::shared_ptr<const Gpu> gpu;
  Handle handle = nullptr;
};

/// An event of its own.
struct OwnEvent : Owned<Event, &Driver::cuEventDestroy> {
  using Owned::Owned;
  static Expected<OwnEvent> make(std::shared_ptr<const Gpu> gpu, unsigned flags);
};

/// Memory of the host that the GPU copies to.
struct OwnPinned : Owned<void *, &Driver::cuMemFreeHost> {
  using Owned::Owned;
  static Expected<OwnPinned> make(std::shared_ptr<const Gpu> gpu, size_t bytes);
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_OWNED_H
