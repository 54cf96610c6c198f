//===- ThreadsCommunicator.h - Ranks of one process --------------*- C++ -*-===//
//
// All ranks are threads of this process, and meet in its memory.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_THREADSCOMMUNICATOR_H
#define SPMD_RUNTIME_HOST_THREADSCOMMUNICATOR_H

#include "spmd/Runtime/Host/Progress.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

class ThreadsCommunicator;

/// What the ranks of one communicator share.
class ThreadsGroup final : public CommunicatorGroup {
public:
  /// `abort` must outlive the group. A collective that is not complete
  /// `timeout` after a rank reached it fails on that rank, and through `abort`
  /// everywhere.
  ThreadsGroup(std::string name, RankGroups groups, AbortState &abort, Clock::duration timeout, int spins);
  ~ThreadsGroup() override;

  Communicator &endpoint(int64_t rank) override;

private:
  friend class ThreadsCommunicator;

  /// What one rank publishes; on cache lines of its own.
  struct alignas(64) Slot {
    std::atomic<uint64_t> meetings{0}; ///< handshakes this rank has reached
    const Collective *call = nullptr;
    std::vector<void *> buffers; ///< AllReduce: all; others: send, receive
  };

  std::string name;
  RankGroups groups;
  std::vector<Slot> slots; ///< by rank
  AbortState &abort;
  Clock::duration timeout;
  int spins;
  std::vector<Progress> arrivals; ///< of the ranks of each group at all handshakes
  std::vector<std::unique_ptr<ThreadsCommunicator>> endpoints;
};

/// All ranks are threads of this process.
class ThreadsFactory final : public CommunicatorFactory {
public:
  int64_t numProcesses() const override { return 1; }
  int64_t process() const override { return 0; }
  Expected<RanksHere> ranksHere(int64_t total) const override { return RanksHere::all(total); }
  Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                    const RankGroups &groups, AbortState &abort,
                                                    const CommunicatorOptions &options) override;
  Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) override {
    return Status::success();
  }
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_THREADSCOMMUNICATOR_H
