//===- HostLink.h - Messages between hosts ----------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_HOSTLINK_H
#define SPMD_LIB_RUNTIME_PROCESS_HOSTLINK_H

#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Host/Progress.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// What carries messages between the processes of a job that is on several hosts. Any thread may call it. Messages of
/// one space and tag between two processes come in the order in which they were sent.
class HostLink {
public:
  /// A message under way.
  struct Request {
    uint64_t handle;
  };

  virtual ~HostLink() = default;

  /// A space of messages of its own. All processes open the same ones, one at a time.
  virtual Expected<int32_t> open() = 0;

  virtual Status send(int32_t space, const void *bytes, int64_t count, int64_t to, int32_t tag, Request &request) = 0;
  virtual Status receive(int32_t space, void *bytes, int64_t count, int64_t from, int32_t tag, Request &request) = 0;
  /// Moves messages, where nothing else does.
  virtual void progress() {}
  /// Whether the message has come or gone. A complete one may be given again.
  virtual Expected<bool> test(Request &request) = 0;
  /// Gives up one that is not complete: its bytes are no longer used.
  virtual void cancel(Request &request) = 0;
  /// A message with `tag` from anybody: its bytes, and whose it is; -1: there is none.
  virtual Expected<int64_t> probe(int32_t space, int32_t tag, int64_t &from) = 0;

  /// Whether a process has ended, though it may have said why.
  virtual bool hasLost() { return false; }
  /// The error that a process has ended, where one has and what it said before was heard. Not every link is told.
  virtual Status findEnded(const RanksHere &ranks) { return Status::success(); }
  /// Whether it is for collectives of arenas, too; else for what processes agree on, and errors.
  virtual bool isForArenas() const = 0;
};

/// Messages under way, of one thread. Their bytes stay where they are until wait() has come back.
class Messages {
public:
  Messages(std::shared_ptr<HostLink> link, int32_t space) : link(std::move(link)), space(space) {}

  /// To or from a process; `of` says whose message it is, for missing().
  void send(const void *bytes, int64_t count, int64_t to, int32_t tag);
  void receive(void *bytes, int64_t count, int64_t from, int32_t tag, int64_t of = -1);

  /// Waits for all. What the link said of one is in error().
  WaitResult wait(const AbortState &abort, Clock::time_point deadline);
  const Status &error() const { return failure; }
  /// Whose messages had not come when wait() ended; each once, in order.
  const std::vector<int64_t> &missing() const { return late; }

  /// Takes a message with `tag` that has come from anybody; false: there is none.
  bool take(int32_t tag, std::string &bytes);

private:
  void note(const Status &status);
  bool test(HostLink::Request &request);
  void giveUp();

  std::shared_ptr<HostLink> link;
  int32_t space;
  std::vector<HostLink::Request> requests;
  std::vector<int64_t> owners; ///< of the requests; -1: of a message that is sent
  std::vector<int64_t> late;
  Status failure;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_HOSTLINK_H
