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

#include "spmd/Runtime/Train/Communicator.h"

#include <vector>

namespace spmd::runtime {

class RankOrderCommunicator : public Communicator {
public:
  RankOrderCommunicator(int64_t rank, int64_t ranks) : rank(rank), ranks(ranks), inputs(static_cast<size_t>(ranks)) {}

  Status allGather(const Collective &call, const void *send, void *recv, Stream *stream) final;
  Status reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream) final;
  Status allReduce(const Collective &call, void *const *buffers, Stream *stream) final;

protected:
  /// Publishes the call and its buffers (send and receive, or all of an all-reduce), waits until all ranks have, and
  /// checks that they made the same call. `buffers` stays as it is until the collective has ended.
  virtual Status begin(const Collective &call, void *const *buffers, size_t count) = 0;
  /// Waits until all ranks have come this far.
  virtual Status meet(const Collective &call) = 0;
  /// What another rank has published.
  virtual const char *bufferOf(int64_t other, size_t index) const = 0;

  const int64_t rank, ranks;

private:
  void *pair[2];                    ///< send and receive, while in a call
  std::vector<const void *> inputs; ///< scratch: one pointer per rank
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_RANKORDERCOMMUNICATOR_H
