//===- RankOrderCommunicator.cpp ------------------------------------------===//

#include "spmd/Runtime/Host/RankOrderCommunicator.h"
#include "spmd/Runtime/Core/Reduce.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

RankOrderCommunicator::RankOrderCommunicator(int64_t rank, const std::vector<int64_t> &members,
                                             const std::string &name, AbortState &abort,
                                             std::chrono::steady_clock::duration timeout)
    : rank(rank), members(members), ranks(static_cast<int64_t>(members.size())),
      position(std::find(members.begin(), members.end(), rank) - members.begin()), name(name), abort(abort),
      timeout(timeout), inputs(members.size()) {}

Status RankOrderCommunicator::timedOut(const Collective &call) const {
  std::vector<int64_t> missing;
  for (int64_t other : members)
    if (meetingsOf(other) < meetingsOf(rank))
      missing.push_back(other);
  return collectiveTimeOut(name, std::chrono::duration<double>(timeout).count(), missing, call);
}

Status RankOrderCommunicator::compareCalls() const {
  int64_t first = members.front();
  for (int64_t other : members)
    if (hashOf(other) != hashOf(first))
      return collectiveMismatch(name, first, textOf(first), other, textOf(other));
  return Status::success();
}

Status RankOrderCommunicator::begin(const Collective &call, void *const *buffers) {
  Status status = publish(call, buffers, call.key.numBuffers());
  if (status.ok())
    status = meet(call);
  if (!status.ok())
    return status;
  status = compareCalls();
  if (!status.ok())
    abort.fail(status);
  return status;
}

Status RankOrderCommunicator::run(const Collective &call, void *const *buffers, Stream *) {
  Status status = begin(call, buffers);
  if (status.ok())
    status = exchange(call, buffers);
  return status.ok() ? meet(call) : status;
}

Status RankOrderCommunicator::exchange(const Collective &call, void *const *buffers) {
  switch (call.key.kind) {
  case CollectiveKind::AllGather:
    allGather(call, buffers[1]);
    return Status::success();
  case CollectiveKind::ReduceScatter:
    reduceScatter(call, buffers[1]);
    return Status::success();
  case CollectiveKind::AllReduce:
    return allReduce(call, buffers);
  }
  return Status::success();
}

void RankOrderCommunicator::allGather(const Collective &call, void *recv) {
  auto bytes = static_cast<size_t>(call.key.messageBytes());
  // Each rank starts at its own chunk, so that ranks read different memory.
  for (int64_t i = 0; i < ranks; ++i) {
    int64_t other = (position + i) % ranks;
    const char *source = bufferOf(at(other), 0);
    char *destination = static_cast<char *>(recv) + static_cast<size_t>(other) * bytes;
    if (source != destination)
      std::memcpy(destination, source, bytes);
  }
}

void RankOrderCommunicator::reduceScatter(const Collective &call, void *recv) {
  const CollectiveKey &key = call.key;
  // In place, a rank overwrites its own chunk, which no other rank reads.
  for (int64_t other = 0; other < ranks; ++other)
    inputs[static_cast<size_t>(other)] = bufferOf(at(other), 0) + position * call.key.messageBytes();
  reduceInOrder(key.dtype, key.kinds[0], inputs.data(), ranks, recv, key.counts[0]);
}

Status RankOrderCommunicator::allReduce(const Collective &call, void *const *buffers) {
  // A reduce-scatter and an all-gather in place: each rank combines one part of
  // every buffer, then fetches the other parts. Parts are multiples of 16
  // elements, so that two ranks do not write the same cache line.
  const CollectiveKey &key = call.key;
  int64_t elementSize = sizeOf(key.dtype);
  auto partOf = [&](int64_t count, int64_t owner, int64_t &begin) {
    int64_t part = ((count + ranks - 1) / ranks + 15) / 16 * 16;
    begin = std::min(count, owner * part);
    return std::min(count, begin + part) - begin;
  };
  for (size_t i = 0; i < key.counts.size(); ++i) {
    int64_t begin;
    int64_t length = partOf(key.counts[i], position, begin);
    if (length == 0)
      continue;
    for (int64_t other = 0; other < ranks; ++other)
      inputs[static_cast<size_t>(other)] = bufferOf(at(other), i) + begin * elementSize;
    reduceInOrder(key.dtype, key.kinds[i], inputs.data(), ranks, static_cast<char *>(buffers[i]) + begin * elementSize,
                  length);
  }
  if (Status status = meet(call); !status.ok())
    return status;
  for (size_t i = 0; i < key.counts.size(); ++i)
    for (int64_t other = 0; other < ranks; ++other) {
      int64_t begin;
      int64_t length = partOf(key.counts[i], other, begin);
      if (other != position && length > 0)
        std::memcpy(static_cast<char *>(buffers[i]) + begin * elementSize,
                    bufferOf(at(other), i) + begin * elementSize,
                    static_cast<size_t>(length * elementSize));
    }
  return Status::success();
}
