//===- HostsFactory.cpp - Processes of several hosts ----------------------===//

#include "HostsCommunicator.h"
#include "ProcessFactory.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>

namespace spmd::runtime {

namespace {

class HostsFactory final : public ProcessFactory {
public:
  HostsFactory(std::shared_ptr<Job> job, Clock::duration timeout, int32_t space)
      : ProcessFactory(std::move(job), timeout), space(space) {}

  Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                    const RankGroups &groups, AbortState &abort,
                                                    const CommunicatorOptions &options) override;
  Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) override;
  Status gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                Clock::duration patience) override;
  Status findEnded(const RanksHere &ranks) const override;
  Status checkHostCollectives() const override;

private:
  Status finish(Messages &messages, const AbortState &abort, Clock::duration patience, const char *hint);

  int32_t space;
};

constexpr int32_t kShareTag = 1, kGatherTag = 2;
constexpr int64_t kMostBytes = 1 << 30; ///< of a message

} // namespace

Expected<std::unique_ptr<CommunicatorGroup>> HostsFactory::make(const std::string &name, const RanksHere &ranks,
                                                                const RankGroups &groups, AbortState &abort,
                                                                const CommunicatorOptions &options) {
  Hosts all;
  all.self = job->hostOf[static_cast<size_t>(process())];
  all.ranksOf.resize(static_cast<size_t>(job->numHosts));
  for (int64_t rank = 0; rank < ranks.total; ++rank)
    all.hostOf.push_back(job->hostOf[static_cast<size_t>(ranks.processOf(rank))]);
  std::vector<Hosts> hosts(groups.count(), all);
  for (size_t group = 0; group < groups.count(); ++group)
    for (int64_t rank : groups.membersOf(group))
      hosts[group].ranksOf[static_cast<size_t>(all.hostOf[static_cast<size_t>(rank)])].push_back(rank);
  Expected<std::vector<std::unique_ptr<HostRanks>>> parts = makeHostRanks(name, ranks, groups, abort, options);
  if (!parts)
    return parts.error();
  Expected<int32_t> opened = job->link->open();
  if (!opened)
    return opened.error();
  return makeHostsGroup(ranks, groups, std::move(*parts), std::move(hosts), job->link, *opened,
                        [job = job, space = space] { return job->claimFirst(space); });
}

Status HostsFactory::finish(Messages &messages, const AbortState &abort, Clock::duration patience,
                            const char *hint) {
  Clock::time_point end = patience == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + patience;
  switch (messages.wait(abort, end)) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::TimedOut:
    return Status::failed("time-out after " + formatNumber(std::chrono::duration<double>(patience).count(), 6) +
                          " s between steps: a process of another host did not come to where this one waits" + hint);
  case WaitResult::Aborted:
    break;
  }
  if (abort.isRaised())
    return abort.status();
  Status status = messages.error();
  status.message += hint; // also where the other has come to its end meanwhile
  return status;
}

Status HostsFactory::share(int64_t from, void *data, int64_t bytes, const AbortState &abort) {
  for (int64_t at = 0; at < bytes; at += kMostBytes) {
    Messages messages(job->link, space);
    char *part = static_cast<char *>(data) + at;
    int64_t count = std::min(kMostBytes, bytes - at);
    if (from != process())
      messages.receive(part, count, from, kShareTag);
    else
      for (int64_t to = 0; to < numProcesses(); ++to)
        if (to != from)
          messages.send(part, count, to, kShareTag);
    // The others may be in a collective that times out; then that is the error.
    if (Status status = finish(messages, abort, 2 * timeout + std::chrono::seconds(2),
                               "; the state of ranks on several hosts is read by all processes together, in Python "
                               "by train_step.sync()");
        !status.ok())
      return status;
  }
  return Status::success();
}

Status HostsFactory::gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                            Clock::duration patience) {
  Messages messages(job->link, space);
  for (int64_t other = 0; other < numProcesses(); ++other) {
    char *place = static_cast<char *>(all) + other * bytes;
    for (int64_t at = 0; at < bytes; at += kMostBytes) {
      int64_t count = std::min(kMostBytes, bytes - at);
      if (other == process()) {
        std::copy_n(static_cast<const char *>(mine) + at, count, place + at);
        continue;
      }
      messages.receive(place + at, count, other, kGatherTag);
      messages.send(static_cast<const char *>(mine) + at, count, other, kGatherTag);
    }
  }
  return finish(messages, abort, patience, "");
}

Status HostsFactory::findEnded(const RanksHere &ranks) const {
  Status here = ProcessFactory::findEnded(ranks);
  return here.ok() ? job->link->findEnded(ranks) : here;
}

Status HostsFactory::checkHostCollectives() const {
  if (job->link->isForArenas())
    return Status::success();
  int64_t other = std::find_if(job->hostOf.begin(), job->hostOf.end(), [](int64_t host) { return host != 0; }) -
                  job->hostOf.begin();
  return Status::badInput(
      "rank " + std::to_string(other) +
      " is on another host than rank 0 (or in another container), and collectives of CPUs travel "
      "between hosts through MPI: start the processes by mpirun or srun, or all of them on one host; "
      "those of GPUs (target cuda) need no MPI");
}

Expected<std::shared_ptr<CommunicatorFactory>> makeHostsFactory(std::shared_ptr<Job> job, Clock::duration timeout) {
  Expected<int32_t> space = job->link->open();
  if (!space)
    return space.error();
  auto factory = std::make_shared<HostsFactory>(std::move(job), timeout, *space);
  if (Status status = factory->makeFirstError(); !status.ok())
    return status;
  return std::shared_ptr<CommunicatorFactory>(std::move(factory));
}

} // namespace spmd::runtime
