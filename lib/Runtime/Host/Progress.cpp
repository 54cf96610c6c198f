//===- Progress.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Host/Progress.h"

#include <algorithm>
#include <thread>

using namespace spmd::runtime;

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void Progress::advance(uint64_t amount) {
  // Both sides use sequential consistency: either this thread sees the sleeper,
  // or the sleeper sees the new value before it sleeps.
  counter.fetch_add(amount, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) == 0)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}

/// True when the counter has reached `target` meanwhile.
bool Progress::spinAndYield(uint64_t target, int spins, const std::atomic<bool> *yieldsAtOnce) const {
  for (int i = 0; i < spins; ++i) {
    if (value() >= target)
      return true;
    if (yieldsAtOnce && yieldsAtOnce->load(std::memory_order_relaxed))
      break;
    relax();
  }
  // Yielding costs half a microsecond and hands the core to a thread that may be
  // the awaited one; sleeping and being woken costs tens of them.
  const int yields = std::max(100, spins / 2);
  for (int i = 0; i < yields; ++i) {
    if (value() >= target)
      return true;
    std::this_thread::yield();
  }
  return false;
}

void Progress::awaitAdvance(uint64_t target, int spins, const std::atomic<bool> *yieldsAtOnce) {
  if (spinAndYield(target, spins, yieldsAtOnce))
    return;
  std::unique_lock<std::mutex> lock(mutex);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  changed.wait(lock, [&] { return counter.load(std::memory_order_seq_cst) >= target; });
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

WaitResult Progress::await(uint64_t target, int spins, const AbortState &abort, Clock::time_point deadline) {
  if (spinAndYield(target, spins, nullptr))
    return WaitResult::Reached;
  constexpr auto slice = std::chrono::milliseconds(20);
  std::unique_lock<std::mutex> lock(mutex);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  WaitResult result = WaitResult::Reached;
  while (counter.load(std::memory_order_seq_cst) < target) {
    if (abort.isRaised()) {
      result = WaitResult::Aborted;
      break;
    }
    Clock::time_point now = Clock::now();
    if (now >= deadline) {
      result = WaitResult::TimedOut;
      break;
    }
    changed.wait_until(lock, std::min(now + slice, deadline));
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return result;
}

int spmd::runtime::spinsFor(int64_t threads) {
  auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  return threads <= cores ? 4000 : 50;
}
