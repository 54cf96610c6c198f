//===- DeviceCopies.h - Tensors that the caller has on a device ---*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_DEVICECOPIES_H
#define SPMD_RUNTIME_TRAIN_DEVICECOPIES_H

#include "spmd/Runtime/Core/Status.h"

#include <string>

namespace spmd::runtime {

/// Where memory is, in the numbers of DLPack's DLDevice.
struct Place {
  enum : int32_t { kHost = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
  int32_t kind = kHost;
  int32_t number = 0;

  /// The host reads it as its own.
  bool isHost() const { return kind == kHost || kind == kCudaHost; }
  /// Whether a device there copies from it.
  bool isOf(const Place &device) const {
    return number == device.number && (kind == device.kind || (kind == kCudaManaged && device.kind == kCuda));
  }
  /// "GPU 1", "the host".
  std::string describe() const {
    if (isHost())
      return "the host";
    bool isGpu = kind == kCuda || kind == kCudaManaged;
    return (isGpu ? "GPU " : "a device of DLPack's kind " + std::to_string(kind) + ", number ") +
           std::to_string(number);
  }
};

/// A stream of the caller's, as DLPack numbers them: of CUDA 1 is the legacy default stream, 2 that of the thread,
/// others are handles.
using CallerStream = int64_t;

/// Copies on a device between the arena of a rank and memory of the caller's there. They come after the steps that were
/// issued and after what the caller's stream had at `begin`; what it gets after `finish` comes after them.
class DeviceCopies {
public:
  virtual ~DeviceCopies() = default;

  virtual Status begin(CallerStream stream) = 0;
  virtual Status copyIn(int64_t offset, const void *source, int64_t bytes) = 0;
  virtual Status copyOut(int64_t offset, void *destination, int64_t bytes) = 0;
  /// Brings bytes of the caller's to the host. This waits for the caller's stream, and not for steps.
  virtual Status fetch(const void *source, void *destination, int64_t bytes) = 0;
  virtual Status finish() = 0;

  /// A stream of the device that no step is issued to: for callers that have none, but can make one wait for what they
  /// have. Copies that were begun with it are over when `finish` returns, if they are out of an arena.
  virtual CallerStream ownStream() const = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_DEVICECOPIES_H
