//===- Abort.h - The first failure of a group of ranks -----------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_ABORT_H
#define SPMD_RUNTIME_TRAIN_ABORT_H

#include "spmd/Runtime/Core/Status.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace spmd::runtime {

/// Shared by all threads of all ranks here: the first error wins, and every
/// wait ends soon after it, so one failing rank takes all others down with it.
/// What waits elsewhere, in other processes or on a device, is told.
class AbortState {
public:
  void fail(Status status) {
    std::vector<std::function<void(const Status &)>> told;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (raised.load(std::memory_order_relaxed))
        return;
      if (look)
        look();
      first = std::move(status);
      raised.store(true, std::memory_order_release);
      told.swap(listeners);
    }
    for (const auto &tell : told)
      tell(first);
  }

  bool isRaised() const { return raised.load(std::memory_order_acquire); }

  /// The first error; success when there is none.
  Status status() const {
    std::lock_guard<std::mutex> lock(mutex);
    return first;
  }

  /// Calls `given` when there is a first error, before anybody is told: what ranks do is still what they did. It must
  /// not ask for the state of this.
  void watch(std::function<void()> given) {
    std::lock_guard<std::mutex> lock(mutex);
    look = std::move(given);
  }

  /// Calls `tell` once, with the first error, on the thread that raises it; at
  /// once when that was before.
  void onFailure(std::function<void(const Status &)> tell) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!raised.load(std::memory_order_relaxed)) {
        listeners.push_back(std::move(tell));
        return;
      }
    }
    tell(first);
  }

private:
  mutable std::mutex mutex;
  std::atomic<bool> raised{false};
  Status first; ///< written once
  std::function<void()> look;
  std::vector<std::function<void(const Status &)>> listeners;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_ABORT_H
