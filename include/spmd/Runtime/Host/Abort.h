//===- Abort.h - The first failure of a group of ranks -----------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_ABORT_H
#define SPMD_RUNTIME_HOST_ABORT_H

#include "spmd/Runtime/Core/Status.h"

#include <atomic>
#include <mutex>

namespace spmd::runtime {

/// Shared by all threads of all ranks: the first error wins, and every wait
/// ends soon after it, so one failing rank takes all others down with it.
class AbortState {
public:
  void fail(Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (raised.load(std::memory_order_relaxed))
      return;
    first = std::move(status);
    raised.store(true, std::memory_order_release);
  }

  bool isRaised() const { return raised.load(std::memory_order_acquire); }

  /// The first error; success when there is none.
  Status status() const {
    std::lock_guard<std::mutex> lock(mutex);
    return first;
  }

private:
  mutable std::mutex mutex;
  std::atomic<bool> raised{false};
  Status first;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_ABORT_H
