//===- ThreadsCommunicator.cpp --------------------------------------------===//

#include "spmd/Runtime/Host/ThreadsCommunicator.h"
#include "spmd/Runtime/Host/RankOrderCommunicator.h"

using namespace spmd::runtime;

namespace spmd::runtime {

/// One rank's end.
class ThreadsCommunicator final : public RankOrderCommunicator {
public:
  ThreadsCommunicator(ThreadsGroup &group, int64_t rank)
      : RankOrderCommunicator(rank, static_cast<int64_t>(group.slots.size())), group(group) {}

private:
  Status begin(const Collective &call, void *const *buffers, size_t count) override;
  Status meet(const Collective &call) override;
  const char *bufferOf(int64_t other, size_t index) const override {
    return static_cast<const char *>(group.slots[static_cast<size_t>(other)].buffers[index]);
  }
  Status compareCalls() const;
  Status timedOut(const Collective &call) const;

  ThreadsGroup &group;
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
  for (int64_t other = 0; other < ranks; ++other)
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
  for (int64_t other = 1; other < ranks; ++other)
    if (const Collective &call = *group.slots[static_cast<size_t>(other)].call; call.hash != reference.hash)
      return collectiveMismatch(group.name, reference, other, call);
  return Status::success();
}

Status ThreadsCommunicator::begin(const Collective &call, void *const *buffers, size_t) {
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
