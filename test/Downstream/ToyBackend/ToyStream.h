//===- ToyStream.h - A queue that a thread runs ----------------------*- C++ -*-===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYSTREAM_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYSTREAM_H

#include "spmd/Runtime/Train/Communicator.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace toy {

/// Runs what is issued one after the other. After a failure the rest is dropped.
class ToyStream final : public spmd::runtime::Stream {
public:
  using Work = std::function<spmd::runtime::Status()>;

  ToyStream() : thread([this] { loop(); }) {}
  ~ToyStream() override {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closing = true;
    }
    changed.notify_all();
    thread.join();
  }

  void issue(Work work) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      queue.push_back(std::move(work));
      ++numIssued;
    }
    changed.notify_all();
  }

  /// How much was issued, and how much of it is done.
  uint64_t issued() const {
    std::lock_guard<std::mutex> lock(mutex);
    return numIssued;
  }
  uint64_t done() const {
    std::lock_guard<std::mutex> lock(mutex);
    return numDone;
  }

  spmd::runtime::Status wait() override {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return numDone == numIssued; });
    return failure;
  }

private:
  void loop() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !queue.empty(); });
      if (queue.empty())
        return;
      Work work = std::move(queue.front());
      queue.pop_front();
      if (failure.ok()) {
        lock.unlock();
        spmd::runtime::Status status = work();
        lock.lock();
        failure = status;
      }
      ++numDone;
      changed.notify_all();
    }
  }

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  uint64_t numIssued = 0, numDone = 0;
  bool closing = false;
  spmd::runtime::Status failure;
  std::thread thread;
};

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYSTREAM_H
