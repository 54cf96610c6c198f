//===- ThreadsCommunicator.cpp --------------------------------------------===//

#include "spmd/Runtime/Host/ThreadsCommunicator.h"
#include "spmd/Runtime/Host/RankOrderCommunicator.h"

using namespace spmd::runtime;

namespace spmd::runtime {

/// What one rank calls: its end of the communicator.
class ThreadsCommunicator final : public RankOrderCommunicator {
public:
  ThreadsCommunicator(ThreadsGroup &group, int64_t rank)
      : RankOrderCommunicator(rank, group.groups.membersOf(group.groups.groupOf(rank)), group.name, group.abort,
                              group.timeout),
        group(group), arrivals(group.arrivals[group.groups.groupOf(rank)]) {}

private:
  Status publish(const Collective &call, void *const *buffers, size_t count) override;
  Status meet(const Collective &call) override;
  const char *bufferOf(int64_t other, size_t index) const override {
    return static_cast<const char *>(slot(other).buffers[index]);
  }
  uint64_t hashOf(int64_t other) const override { return slot(other).call->hash; }
  CollectiveText textOf(int64_t other) const override { return slot(other).call->toText(); }
  uint64_t meetingsOf(int64_t other) const override { return slot(other).meetings.load(); }

  ThreadsGroup::Slot &slot(int64_t of) const { return group.slots[static_cast<size_t>(of)]; }

  ThreadsGroup &group;
  Progress &arrivals;
};

} // namespace spmd::runtime

ThreadsGroup::ThreadsGroup(std::string name, RankGroups given, AbortState &abort, Clock::duration timeout, int spins)
    : name(std::move(name)), groups(std::move(given)),
      slots(groups.count() * static_cast<size_t>(groups.size())), abort(abort), timeout(timeout), spins(spins),
      arrivals(groups.count()) {
  for (int64_t rank = 0; rank < static_cast<int64_t>(slots.size()); ++rank)
    endpoints.push_back(std::make_unique<ThreadsCommunicator>(*this, rank));
}

ThreadsGroup::~ThreadsGroup() = default;

Communicator &ThreadsGroup::endpoint(int64_t rank) { return *endpoints[static_cast<size_t>(rank)]; }

Expected<std::unique_ptr<CommunicatorGroup>> ThreadsFactory::make(const std::string &name, const RanksHere &,
                                                                  const RankGroups &groups, AbortState &abort,
                                                                  const CommunicatorOptions &options) {
  return std::unique_ptr<CommunicatorGroup>(
      std::make_unique<ThreadsGroup>(name, groups, abort, options.timeout, spinsFor(options.threads)));
}

Status ThreadsCommunicator::meet(const Collective &call) {
  uint64_t meeting = ++slot(rank).meetings;
  arrivals.advance();
  switch (arrivals.await(meeting * members.size(), group.spins, abort, Clock::now() + timeout)) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::Aborted:
    return abort.status();
  case WaitResult::TimedOut:
    break;
  }
  Status status = timedOut(call);
  abort.fail(status);
  return status;
}

Status ThreadsCommunicator::publish(const Collective &call, void *const *buffers, size_t count) {
  // A failure ends a call of this rank while others, who had met it, still read what it published then.
  if (abort.isRaised())
    return abort.status();
  slot(rank).call = &call;
  slot(rank).buffers.assign(buffers, buffers + count);
  return Status::success();
}
