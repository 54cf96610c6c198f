//===- Gpu.h - One device and what a rank keeps on it -------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_GPU_H
#define SPMD_LIB_RUNTIME_CUDA_GPU_H

#include "Driver.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <memory>

namespace spmd::runtime::cuda {

/// A device that a rank here computes on. Everything that is issued for the rank goes to its streams; the first of them
/// is also that of copies between steps.
class Gpu {
public:
  /// Device `ordinal` of those that the process sees.
  static Expected<std::shared_ptr<Gpu>> open(std::shared_ptr<const Driver> driver, int ordinal);
  ~Gpu();

  const Driver &driver() const { return *loaded; }
  int ordinal() const { return number; }
  /// 90 of compute capability 9.0.
  int chip() const { return capability; }
  const std::string &name() const { return title; }
  /// The same in all processes that see the device, or the same part of it: "GPU-8a1f…", as nvidia-smi -L says.
  const std::string &uuid() const { return id; }
  int multiprocessors() const { return numMultiprocessors; }

  /// Makes the device the calling thread's.
  Status use() const;
  /// The same where another library may have changed that.
  Status useAgain() const;

  StreamHandle mainStream() const { return main; }
  /// A stream whose kernels go before those of streams of later places that wait; the device has a few.
  Expected<StreamHandle> makeStream(int64_t place) const;
  static constexpr int64_t kLastPlace = INT32_MAX;

private:
  Gpu() = default;
  std::shared_ptr<const Driver> loaded;
  int number = 0, capability = 0, numMultiprocessors = 0;
  DeviceHandle device = 0;
  std::string title, id;
  Context context = nullptr;
  StreamHandle main = nullptr;
};

/// A stream as communicators see it.
class CudaStream final : public Stream {
public:
  CudaStream(std::shared_ptr<const Gpu> gpu, StreamHandle handle, bool owns)
      : gpu(std::move(gpu)), handle(handle), owns(owns) {}
  ~CudaStream() override {
    if (owns && gpu->use().ok())
      (void)gpu->driver().cuStreamDestroy(handle);
  }
  Status wait() override {
    if (Status status = gpu->use(); !status.ok())
      return status;
    return gpu->driver().check(gpu->driver().cuStreamSynchronize(handle), "cuStreamSynchronize");
  }
  StreamHandle get() const { return handle; }

private:
  std::shared_ptr<const Gpu> gpu;
  StreamHandle handle;
  bool owns;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_GPU_H
