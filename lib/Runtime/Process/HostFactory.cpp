//===- HostFactory.cpp - Processes of one host ----------------------------===//

#include "ProcessFactory.h"
#include "ReadService.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Host/RankOrderCommunicator.h"

#include <cstring>

namespace spmd::runtime {

namespace {

/// One rank's end of a communicator.
class ProcessCommunicator final : public RankOrderCommunicator {
public:
  ProcessCommunicator(HostRanks &host, int64_t rank)
      : RankOrderCommunicator(rank, host.members, host.name, host.abort, host.timeout), host(host) {}

private:
  Status publish(const Collective &call, void *const *buffers, size_t count) override {
    return host.publish(rank, call, buffers, count);
  }
  Status meet(const Collective &call) override { return host.meet(rank, call); }
  const char *bufferOf(int64_t other, size_t index) const override { return host.bufferOf(other, index); }
  uint64_t hashOf(int64_t other) const override { return host.hashOf(other); }
  CollectiveText textOf(int64_t other) const override { return host.textOf(other); }
  uint64_t meetingsOf(int64_t other) const override { return host.meetingsOf(other); }

  HostRanks &host;
};

/// All ranks are on this host. The ends of each group meet in a block of their own.
class ProcessGroup final : public CommunicatorGroup {
public:
  ProcessGroup(std::vector<std::unique_ptr<HostRanks>> given, const RanksHere &here, const RankGroups &groups)
      : hosts(std::move(given)), here(here) {
    for (int64_t rank = here.first; rank < here.end(); ++rank)
      endpoints.push_back(std::make_unique<ProcessCommunicator>(*hosts[groups.groupOf(rank)], rank));
  }
  Communicator &endpoint(int64_t rank) override { return *endpoints[here.indexOf(rank)]; }
  bool failEverywhere(const Status &status) override {
    // All groups share the first error.
    for (std::unique_ptr<HostRanks> &host : hosts)
      if (host)
        host->fail(status);
    return true;
  }

private:
  std::vector<std::unique_ptr<HostRanks>> hosts; ///< by group
  RanksHere here;
  std::vector<std::unique_ptr<ProcessCommunicator>> endpoints;
};

constexpr int64_t kBoxBytes = 1 << 20;

class HostFactory final : public ProcessFactory {
public:
  using ProcessFactory::ProcessFactory;

  Status makeBox();
  char *arenaOf(int64_t rank) const override { return arenas[static_cast<size_t>(rank)].get(); }
  bool hasAllArenas() const override { return !arenas.empty(); }
  bool readsAlone() const override { return hasAllArenas() || service; }
  Status startReading(const RanksHere &ranks, Reader read) override;
  void stopReading(const AbortState &abort) override;
  Status readArena(int64_t rank, int64_t offset, void *destination, int64_t bytes, const AbortState &abort) override {
    return service->read(rank, offset, destination, bytes, abort);
  }
  void finishStep() override { control->finishStep(process()); }
  Status awaitSteps(const AbortState &abort) override;
  void finishWrite() override {
    if (service) // in arenas that all map one process writes all of it
      control->finishWrite(process());
  }
  Status awaitWrites(const AbortState &abort, Clock::duration patience) override;
  Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                    const RankGroups &groups, AbortState &abort,
                                                    const CommunicatorOptions &options) override;
  Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) override;
  Status gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                Clock::duration patience) override;

private:
  Status meetAll(const AbortState &abort, Clock::duration patience);
  Status check(WaitResult result, const AbortState &abort, Clock::duration patience);

  // A block with one rank for each process, and a box of bytes.
  std::shared_ptr<char> box; ///< its parts by process, in gather()
  std::shared_ptr<Control> control;
  std::unique_ptr<ReadService> service; ///< where arenas are not mapped
};

} // namespace

Status HostFactory::makeBox() {
  int64_t bytes = Control::sizeFor(numProcesses());
  Expected<std::shared_ptr<char>> memory = makeBlock(bytes + kBoxBytes);
  if (!memory)
    return memory.error();
  control = std::make_shared<Control>(*memory, firstError, numProcesses(), job->processesHere(), 1, job->peers);
  box = std::shared_ptr<char>(*memory, memory->get() + bytes);
  return Status::success();
}

Status HostFactory::startReading(const RanksHere &ranks, Reader read) {
  Expected<std::shared_ptr<char>> memory = makeBlock(ReadService::sizeFor(numProcesses()));
  if (!memory)
    return memory.error();
  service = std::make_unique<ReadService>(std::move(*memory), ranks, process(), job->peers, std::move(read));
  return Status::success();
}

void HostFactory::stopReading(const AbortState &abort) {
  if (service)
    service->stop(abort.isRaised() ? Clock::duration() : 2 * timeout);
  service.reset();
}

Expected<std::unique_ptr<CommunicatorGroup>> HostFactory::make(const std::string &name, const RanksHere &ranks,
                                                               const RankGroups &groups, AbortState &abort,
                                                               const CommunicatorOptions &options) {
  Expected<std::vector<std::unique_ptr<HostRanks>>> hosts = makeHostRanks(name, ranks, groups, abort, options);
  if (!hosts)
    return hosts.error();
  return std::unique_ptr<CommunicatorGroup>(std::make_unique<ProcessGroup>(std::move(*hosts), ranks, groups));
}

/// The end of a wait for `patience`; as long as the others live, where that is the longest there is.
static Clock::time_point after(Clock::duration patience) {
  return patience == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + patience;
}

/// What a wait for other processes ended with.
Status HostFactory::check(WaitResult result, const AbortState &abort, Clock::duration patience) {
  switch (result) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::TimedOut:
    control->fail(Status::failed("time-out after " +
                                 formatNumber(std::chrono::duration<double>(patience).count(), 6) +
                                 " s between steps: process " + control->listBehind(process()) +
                                 " did not come to where the others wait"));
    break;
  case WaitResult::Aborted:
    break;
  }
  return abort.isRaised() ? abort.status() : control->error();
}

Status HostFactory::meetAll(const AbortState &abort, Clock::duration patience) {
  return check(control->meet(process(), 50, abort, after(patience)), abort, patience);
}

Status HostFactory::awaitSteps(const AbortState &abort) {
  // The others may be in a collective that times out; then that is the error.
  Clock::duration patience = 2 * timeout;
  return check(control->awaitSteps(process(), abort, after(patience)), abort, patience);
}

Status HostFactory::awaitWrites(const AbortState &abort, Clock::duration patience) {
  return check(control->awaitWrites(process(), abort, after(patience)), abort, patience);
}

Status HostFactory::share(int64_t from, void *data, int64_t bytes, const AbortState &abort) {
  bool isSource = from == process();
  for (int64_t at = 0; at < bytes; at += kBoxBytes) {
    char *part = static_cast<char *>(data) + at;
    auto count = static_cast<size_t>(std::min(kBoxBytes, bytes - at));
    if (isSource)
      std::memcpy(box.get(), part, count);
    if (Status status = meetAll(abort, 2 * timeout); !status.ok())
      return status;
    if (!isSource)
      std::memcpy(part, box.get(), count);
    // The box is filled again only when all have read it.
    if (Status status = meetAll(abort, 2 * timeout); !status.ok())
      return status;
  }
  return Status::success();
}

Status HostFactory::gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                           Clock::duration patience) {
  int64_t room = kBoxBytes / numProcesses();
  for (int64_t at = 0; at < bytes; at += room) {
    auto count = static_cast<size_t>(std::min(room, bytes - at));
    std::memcpy(box.get() + process() * room, static_cast<const char *>(mine) + at, count);
    if (Status status = meetAll(abort, patience); !status.ok())
      return status;
    for (int64_t from = 0; from < numProcesses(); ++from)
      std::memcpy(static_cast<char *>(all) + from * bytes + at, box.get() + from * room, count);
    if (Status status = meetAll(abort, patience); !status.ok())
      return status;
  }
  return Status::success();
}

Expected<std::shared_ptr<CommunicatorFactory>> makeHostFactory(std::shared_ptr<Job> job, Clock::duration timeout) {
  auto factory = std::make_shared<HostFactory>(std::move(job), timeout);
  Status status = factory->makeFirstError();
  if (status.ok())
    status = factory->makeBox();
  if (!status.ok())
    return status;
  return std::shared_ptr<CommunicatorFactory>(std::move(factory));
}

} // namespace spmd::runtime
