//===- RankOrderCommunicator.h - Ranks that read each other ------*- C++ -*-===//
//
// Collectives between ranks that can read each other's buffers: each rank
// publishes its buffers, all meet in a handshake, each copies or reduces its part
// straight out of the others' buffers, in rank order, and all meet again before
// the buffers may change. Nothing is staged and nothing is allocated. How ranks
// publish and meet is what threads and processes differ in.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_HOST_RANKORDERCOMMUNICATOR_H
#define SPMD_RUNTIME_HOST_RANKORDERCOMMUNICATOR_H

#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <vector>

namespace spmd::runtime {

class RankOrderCommunicator : public Communicator {
public:
  /// `members` are the ranks that meet, `rank` among them. `name` is for errors; a collective that is not complete
  /// `timeout` after a rank reached it fails, which `abort` hears of. All outlive the communicator.
  RankOrderCommunicator(int64_t rank, const std::vector<int64_t> &members, const std::string &name, AbortState &abort,
                        std::chrono::steady_clock::duration timeout);

  Status run(const Collective &call, void *const *buffers, Stream *stream) final;

protected:
  /// Shows all members the call and its buffers (send and receive, or all of an all-reduce), which stay as they are until
  /// the collective has ended.
  virtual Status publish(const Collective &call, void *const *buffers, size_t count) = 0;
  /// Waits until all members have come this far: counts this rank's meeting (`meetingsOf`) first. Ends with the abort's
  /// status when that is raised, and after `timeout` with `timedOut(call)`, which it raises.
  virtual Status meet(const Collective &call) = 0;
  /// What a member has published.
  virtual const char *bufferOf(int64_t other, size_t index) const = 0;
  virtual uint64_t hashOf(int64_t other) const = 0;
  virtual CollectiveText textOf(int64_t other) const = 0;
  /// How often a rank has met the others, or waits to.
  virtual uint64_t meetingsOf(int64_t other) const = 0;

  /// That the ranks which have met less often than this one did not come to `call`.
  Status timedOut(const Collective &call) const;

  const int64_t rank;
  const std::vector<int64_t> &members;
  const int64_t ranks;    ///< that meet
  const int64_t position; ///< of this one among them
  const std::string &name;
  AbortState &abort;
  const std::chrono::steady_clock::duration timeout;

private:
  /// Publishes the call, waits until all ranks have, and checks that they made the same one.
  Status begin(const Collective &call, void *const *buffers);
  Status compareCalls() const;
  /// What each collective does between the two meetings of its ranks.
  Status exchange(const Collective &call, void *const *buffers);
  void allGather(const Collective &call, void *recv);
  void reduceScatter(const Collective &call, void *recv);
  Status allReduce(const Collective &call, void *const *buffers);
  int64_t at(int64_t place) const { return members[static_cast<size_t>(place)]; }

  std::vector<const void *> inputs; ///< scratch: one pointer per member
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_RANKORDERCOMMUNICATOR_H
