//===- Progress.h - A counter that threads wait on ---------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_PROGRESS_H
#define SPMD_RUNTIME_HOST_PROGRESS_H

#include "spmd/Runtime/Train/Abort.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace spmd::runtime {

using Clock = std::chrono::steady_clock;

enum class WaitResult { Reached, Aborted, TimedOut };

/// A counter that only grows. Completion flags, handshakes and step starts are
/// all of this kind: a thread waits until the counter reaches a value.
///
/// [Note: waiting] A waiter spins for a moment (100 us), because the next command
/// is often microseconds away, then looks again between yields, for up to a
/// millisecond where every thread has a core, then sleeps: there may be more
/// threads than cores, and a spinning thread keeps the one it waits for from
/// running. The caller of a step is one of them: where the ranks' threads take
/// all cores it does not spin, and at the end of a step they make room for it.
/// Yields come late, as they may cost a time slice and what is in the caches.
/// Sleeping is in short slices, so that an abort needs no list of sleepers to wake.
/// Where whoever ends the wait advances the counter too (idle threads between steps),
/// there are no slices: programs that are kept and not run take no time.
class Progress {
public:
  uint64_t value() const { return counter.load(std::memory_order_acquire); }

  /// Adds `amount`; what the caller wrote before is visible to waiters.
  void advance(uint64_t amount = 1);

  /// Waits until the counter is at least `target`.
  WaitResult await(uint64_t target, int spins, const AbortState &abort,
                   Clock::time_point deadline = Clock::time_point::max());

  /// The same without an abort or a deadline: to end the wait early, advance. Does not spin while `yieldsAtOnce` is
  /// set.
  void awaitAdvance(uint64_t target, int spins, const std::atomic<bool> *yieldsAtOnce = nullptr);

private:
  bool spinAndYield(uint64_t target, int spins, const std::atomic<bool> *yieldsAtOnce) const;

  std::atomic<uint64_t> counter{0};
  std::atomic<int32_t> sleepers{0};
  std::mutex mutex;
  std::condition_variable changed;
};

/// How long to spin when `threads` threads share this machine's cores.
int spinsFor(int64_t threads);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_PROGRESS_H
