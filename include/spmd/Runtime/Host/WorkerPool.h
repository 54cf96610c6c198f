//===- WorkerPool.h - The threads of one rank's compute stream ---*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_WORKERPOOL_H
#define SPMD_RUNTIME_HOST_WORKERPOOL_H

#include "spmd/Runtime/Host/Progress.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace spmd::runtime {

/// Runs parallel loops on the calling thread and threads - 1 helpers. One
/// thread at a time may call parallelFor. Nothing is allocated after
/// construction.
class WorkerPool {
public:
  using Body = void (*)(void *context, int64_t begin, int64_t end);

  /// `name` is what debuggers and profilers show for the helpers, `prepare` what
  /// each of them runs first. Returns when all of them are ready for work.
  WorkerPool(int64_t threads, int spins, const std::string &name, std::function<void()> prepare = {});
  ~WorkerPool();

  int64_t threads() const { return static_cast<int64_t>(helpers.size()) + 1; }

  /// Calls body on ranges that cover [0, iterations), each a multiple of `grain`
  /// long but the last. Which thread runs which range is not determined: each
  /// begins with its own share, the same part of every loop of as many iterations, so
  /// that what one command leaves in a core's cache the next one finds there.
  /// The caller's comes first, and no other is larger.
  void parallelFor(int64_t iterations, int64_t grain, Body body, void *context);

  /// No loop follows soon: until the next one helpers do not spin.
  void rest() { resting.store(true, std::memory_order_relaxed); }

private:
  void helperLoop(int64_t thread);
  void work(int64_t thread);

  // [Note: open gate] A helper takes part by raising the count in `gate` while
  // the gate is open. The caller closes it when no range is left and waits only
  // for helpers that took part, never for one that is still asleep.
  static constexpr uint64_t kOpen = uint64_t(1) << 63;

  /// Iterations of a thread; whoever has done its own goes on with those of others.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  // What a helper reads first is one line of the cache: lines come from another
  // core one by one, at up to half a microsecond each.
  alignas(64) Body body = nullptr;
  void *context = nullptr;
  int64_t piece = 0;
  std::atomic<uint64_t> gate{0};
  Progress loops; ///< loops started
  Progress ready; ///< helpers that have started
  std::atomic<bool> resting{false};
  std::vector<Share> shares;
  AbortState stop;
  int spins;
  std::vector<std::thread> helpers;
};

/// Names the calling thread for debuggers and profilers.
void setThreadName(const std::string &name);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_WORKERPOOL_H
