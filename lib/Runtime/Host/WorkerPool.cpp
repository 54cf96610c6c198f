//===- WorkerPool.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Host/WorkerPool.h"

#include <algorithm>
#include <pthread.h>

using namespace spmd::runtime;

void spmd::runtime::setThreadName(const std::string &name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

WorkerPool::WorkerPool(int64_t threads, int spins, const std::string &name, std::function<void()> prepare)
    : shares(static_cast<size_t>(threads)), spins(spins) {
  for (int64_t i = 1; i < threads; ++i)
    helpers.emplace_back([this, i, name, prepare] {
      setThreadName(name);
      if (prepare)
        prepare();
      ready.advance();
      helperLoop(i);
    });
  ready.await(helpers.size(), 0, stop);
}

WorkerPool::~WorkerPool() {
  stop.fail(Status::failed("stopped"));
  loops.advance();
  for (std::thread &helper : helpers)
    helper.join();
}

void WorkerPool::work(int64_t thread) {
  for (int64_t i = 0; i < threads(); ++i) {
    Share &share = shares[static_cast<size_t>((thread + i) % threads())];
    for (;;) {
      int64_t begin = share.next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= share.end)
        break;
      body(context, begin, std::min(begin + piece, share.end));
    }
  }
}

void WorkerPool::helperLoop(int64_t thread) {
  uint64_t seen = 0;
  for (;;) {
    loops.awaitAdvance(seen + 1, spins, &resting);
    if (stop.isRaised())
      return;
    seen = loops.value();
    uint64_t state = gate.load(std::memory_order_acquire);
    while ((state & kOpen) && !gate.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel))
      ;
    if (!(state & kOpen))
      continue;
    work(thread);
    gate.fetch_sub(1, std::memory_order_release);
  }
}

void WorkerPool::parallelFor(int64_t count, int64_t grain, Body run, void *argument) {
  if (count <= 0)
    return;
  if (helpers.empty() || count <= grain)
    return run(argument, 0, count);
  // Four pieces per thread even out unequal progress.
  int64_t even = (count + threads() * 4 - 1) / (threads() * 4);
  piece = (even + grain - 1) / grain * grain;
  body = run;
  context = argument;
  int64_t pieces = (count + piece - 1) / piece;
  // Rounded up: the caller, who is awake, has as many pieces as any other.
  int64_t begin = 0;
  for (int64_t i = 0; i < threads(); ++i) {
    Share &share = shares[static_cast<size_t>(i)];
    share.next.store(begin, std::memory_order_relaxed);
    begin = share.end = std::min((pieces * (i + 1) + threads() - 1) / threads() * piece, count);
  }
  resting.store(false, std::memory_order_relaxed);
  gate.store(kOpen, std::memory_order_release);
  loops.advance();
  work(0);
  uint64_t state = gate.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  for (int i = 0; state != 0; ++i) {
    if (i > spins)
      std::this_thread::yield();
    state = gate.load(std::memory_order_acquire);
  }
}
