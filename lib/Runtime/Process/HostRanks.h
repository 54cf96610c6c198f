//===- HostRanks.h - The ranks of a host, in its processes ------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_HOSTRANKS_H
#define SPMD_LIB_RUNTIME_PROCESS_HOSTRANKS_H

#include "Control.h"
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <map>
#include <thread>

namespace spmd::runtime {

/// What the ranks of one communicator that are on this host share: each shows the others what it calls and where its
/// buffers are, and all meet. An error of one process is one of all.
class HostRanks {
public:
  /// `members` are the ranks of this host; `arenas` has theirs, by rank. `abort` outlives it.
  HostRanks(std::string name, const RanksHere &here, std::vector<int64_t> members, std::shared_ptr<Control> control,
            std::vector<std::shared_ptr<char>> arenas, AbortState &abort, Clock::duration timeout, int spins);
  ~HostRanks();

  /// Shows the call of `rank`, which is in this process, and its buffers.
  Status publish(int64_t rank, const Collective &call, void *const *buffers, size_t count);
  /// Waits until all members have come as far as `rank`, which they are given some `more` time for.
  Status meet(int64_t rank, const Collective &call, Clock::duration more = {});

  // What a member has published.
  const char *bufferOf(int64_t member, size_t index) const {
    return arenas[static_cast<size_t>(member)].get() + control->slot(member).offsets[index];
  }
  uint64_t hashOf(int64_t member) const { return control->slot(member).hash; }
  CollectiveText textOf(int64_t member) const;
  uint64_t meetingsOf(int64_t member) const { return control->slot(member).meetings.load(); }

  /// Makes `status` the error of all processes here.
  void fail(const Status &status);

  const std::string name;
  const RanksHere here;
  const std::vector<int64_t> members;
  AbortState &abort;
  const Clock::duration timeout;

private:
  void watch();

  std::shared_ptr<Control> control;
  std::vector<std::shared_ptr<char>> arenas;
  int spins;
  /// Of the calls so far by rank here, so that later steps allocate nothing.
  std::vector<std::map<const Collective *, CollectiveText>> texts;
  std::atomic<bool> isClosing = false;
  std::thread watcher;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_HOSTRANKS_H
