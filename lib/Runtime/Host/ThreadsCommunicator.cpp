//===- ThreadsCommunicator.cpp --------------------------------------------===//

#include "spmd/Runtime/Host/ThreadsCommunicator.h"
#include "spmd/Runtime/Core/Reduce.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

namespace spmd::runtime {

/// One rank's end.
class ThreadsCommunicator final : public Communicator {
public:
  ThreadsCommunicator(ThreadsGroup &group, int64_t rank) : group(group), rank(rank), inputs(group.slots.size()) {}

  Status allGather(const Collective &call, const void *send, void *recv, Stream *stream) override;
  Status reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream) override;
  Status allReduce(const Collective &call, void *const *buffers, Stream *stream) override;

private:
  int64_t size() const { return static_cast<int64_t>(group.slots.size()); }

  /// Publishes the call, waits for all ranks, and compares.
  Status begin(const Collective &call, void *const *buffers);
  /// Waits until all ranks have come this far.
  Status meet(const Collective &call);
  Status compareCalls() const;
  Status timedOut(const Collective &call) const;
  const char *bufferOf(int64_t other, size_t index) const {
    return static_cast<const char *>(group.slots[static_cast<size_t>(other)].buffers[index]);
  }

  ThreadsGroup &group;
  int64_t rank;
  void *pair[2];                    ///< send and receive, while in a call
  std::vector<const void *> inputs; ///< scratch: one pointer per rank
};

} // namespace spmd::runtime

ThreadsGroup::ThreadsGroup(std::string name, int64_t ranks, AbortState &abort, Clock::duration timeout, int spins)
    : name(std::move(name)), slots(static_cast<size_t>(ranks)), abort(abort), timeout(timeout), spins(spins) {
  for (int64_t rank = 0; rank < ranks; ++rank)
    endpoints.push_back(std::make_unique<ThreadsCommunicator>(*this, rank));
}

ThreadsGroup::~ThreadsGroup() = default;

Communicator &ThreadsGroup::endpoint(int64_t rank) { return *endpoints[static_cast<size_t>(rank)]; }

Expected<std::unique_ptr<CommunicatorGroup>> ThreadsFactory::make(const std::string &name, const RanksHere &ranks,
                                                                  AbortState &abort,
                                                                  const CommunicatorOptions &options) {
  return std::unique_ptr<CommunicatorGroup>(
      std::make_unique<ThreadsGroup>(name, ranks.total, abort, options.timeout, spinsFor(options.threads)));
}

Status ThreadsCommunicator::timedOut(const Collective &call) const {
  auto self = group.slots[static_cast<size_t>(rank)].meetings.load();
  std::vector<int64_t> missing;
  for (int64_t other = 0; other < size(); ++other)
    if (group.slots[static_cast<size_t>(other)].meetings.load() < self)
      missing.push_back(other);
  return collectiveTimeOut(group.name, std::chrono::duration<double>(group.timeout).count(), missing, call);
}

Status ThreadsCommunicator::meet(const Collective &call) {
  uint64_t meeting = ++group.slots[static_cast<size_t>(rank)].meetings;
  group.arrivals.advance();
  switch (group.arrivals.await(meeting * group.slots.size(), group.spins, group.abort, Clock::now() + group.timeout)) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::Aborted:
    return group.abort.status();
  case WaitResult::TimedOut:
    break;
  }
  Status status = timedOut(call);
  group.abort.fail(status);
  return status;
}

Status ThreadsCommunicator::compareCalls() const {
  const Collective &reference = *group.slots[0].call;
  for (int64_t other = 1; other < size(); ++other)
    if (const Collective &call = *group.slots[static_cast<size_t>(other)].call; call.hash != reference.hash)
      return collectiveMismatch(group.name, reference, other, call);
  return Status::success();
}

Status ThreadsCommunicator::begin(const Collective &call, void *const *buffers) {
  ThreadsGroup::Slot &slot = group.slots[static_cast<size_t>(rank)];
  slot.call = &call;
  slot.buffers = buffers;
  if (Status status = meet(call); !status.ok())
    return status;
  Status status = compareCalls();
  if (!status.ok())
    group.abort.fail(status);
  return status;
}

Status ThreadsCommunicator::allGather(const Collective &call, const void *send, void *recv, Stream *) {
  pair[0] = const_cast<void *>(send);
  pair[1] = recv;
  if (Status status = begin(call, pair); !status.ok())
    return status;
  auto bytes = static_cast<size_t>(call.messageBytes());
  // Each rank starts at its own chunk, so that ranks read different memory.
  for (int64_t i = 0; i < size(); ++i) {
    int64_t other = (rank + i) % size();
    const char *source = bufferOf(other, 0);
    char *destination = static_cast<char *>(recv) + static_cast<size_t>(other) * bytes;
    if (source != destination)
      std::memcpy(destination, source, bytes);
  }
  return meet(call);
}

Status ThreadsCommunicator::reduceScatter(const Collective &call, const void *send, void *recv, Stream *) {
  pair[0] = const_cast<void *>(send);
  pair[1] = recv;
  if (Status status = begin(call, pair); !status.ok())
    return status;
  const CollectiveKey &key = call.key;
  // In place, a rank overwrites its own chunk, which no other rank reads.
  for (int64_t other = 0; other < size(); ++other)
    inputs[static_cast<size_t>(other)] = bufferOf(other, 0) + rank * call.messageBytes();
  reduceInOrder(key.dtype, key.kinds[0], inputs.data(), size(), recv, key.counts[0]);
  return meet(call);
}

Status ThreadsCommunicator::allReduce(const Collective &call, void *const *buffers, Stream *) {
  if (Status status = begin(call, buffers); !status.ok())
    return status;
  // A reduce-scatter and an all-gather in place: each rank combines one part of
  // every buffer, then fetches the other parts. Parts are multiples of 16
  // elements, so that two ranks do not write the same cache line.
  const CollectiveKey &key = call.key;
  int64_t elementSize = sizeOf(key.dtype);
  auto partOf = [&](int64_t count, int64_t owner, int64_t &begin) {
    int64_t part = ((count + size() - 1) / size() + 15) / 16 * 16;
    begin = std::min(count, owner * part);
    return std::min(count, begin + part) - begin;
  };
  for (size_t i = 0; i < key.counts.size(); ++i) {
    int64_t begin;
    int64_t length = partOf(key.counts[i], rank, begin);
    if (length == 0)
      continue;
    for (int64_t other = 0; other < size(); ++other)
      inputs[static_cast<size_t>(other)] = bufferOf(other, i) + begin * elementSize;
    reduceInOrder(key.dtype, key.kinds[i], inputs.data(), size(), static_cast<char *>(buffers[i]) + begin * elementSize,
                  length);
  }
  if (Status status = meet(call); !status.ok())
    return status;
  for (size_t i = 0; i < key.counts.size(); ++i)
    for (int64_t other = 0; other < size(); ++other) {
      int64_t begin;
      int64_t length = partOf(key.counts[i], other, begin);
      if (other != rank && length > 0)
        std::memcpy(static_cast<char *>(buffers[i]) + begin * elementSize, bufferOf(other, i) + begin * elementSize,
                    static_cast<size_t>(length * elementSize));
    }
  return meet(call);
}
