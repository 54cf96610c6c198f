//===- Mail.h - Messages between the processes of a job ------------*- C++ -*-===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_MAIL_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_MAIL_H

#include "spmd/Runtime/Train/Abort.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace toy {

using Clock = std::chrono::steady_clock;

enum class Arrival { Here, Aborted, TimedOut, Ended };

/// One rank's socket to each other rank. A thread reads whatever comes, so that nobody waits in order to send.
class Mail {
public:
  /// Takes the sockets, one per rank; that of `rank` itself is not used.
  Mail(int64_t rank, std::vector<int> sockets);
  ~Mail();

  int64_t rank() const { return self; }
  int64_t ranks() const { return static_cast<int64_t>(sockets.size()); }

  /// A peer that has ended gets nothing.
  void send(int64_t to, uint32_t channel, const std::string &bytes);

  /// The next message of `from` on a channel; messages keep their order.
  Arrival receive(int64_t from, uint32_t channel, Clock::time_point deadline, const spmd::runtime::AbortState &abort,
                  std::string &bytes);

  /// Channels have the same numbers in all processes when these make them in the same order. Failures go both ways: one
  /// in `abort` is told to the peers, theirs are raised in it, until the channel is closed.
  uint32_t open(spmd::runtime::AbortState &abort);
  void close(uint32_t channel);

  static constexpr uint32_t kControl = 1;

private:
  static constexpr uint32_t kAborts = 0;

  void readLoop();
  bool readMessage(int64_t from);
  void raise(uint32_t channel, const spmd::runtime::Status &status);

  int64_t self;
  std::vector<int> sockets;
  int wake[2]; ///< a pipe that ends the thread
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int64_t, uint32_t>, std::deque<std::string>> arrived;
  std::vector<bool> ended;
  std::map<uint32_t, spmd::runtime::AbortState *> aborts; ///< of open channels
  std::map<uint32_t, spmd::runtime::Status> early;        ///< of channels that a peer opened first
  uint32_t channels = 2;
  std::vector<std::unique_ptr<std::mutex>> sending;
  std::shared_ptr<Mail *> alive; ///< null once this is gone: an AbortState may live longer
  std::thread reader;
};

/// Starts a process for each of `ranks` ranks and calls `body` in it. True when all returned 0.
bool runProcesses(int64_t ranks, const std::function<int(std::shared_ptr<Mail>)> &body);

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_MAIL_H
