//===- ProcessCommunicator.cpp - Ranks in several processes ---------------===//

#include "spmd/Runtime/Process/ProcessCommunicator.h"

#include "Control.h"
#include "SharedMemory.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Host/RankOrderCommunicator.h"
#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

namespace spmd::runtime {

using std::chrono::milliseconds;

namespace {

class ProcessGroup;

/// One rank's end.
class ProcessCommunicator final : public RankOrderCommunicator {
public:
  ProcessCommunicator(ProcessGroup &group, int64_t rank);

private:
  Status publish(const Collective &call, void *const *buffers, size_t count) override;
  Status meet(const Collective &call) override;
  const char *bufferOf(int64_t other, size_t index) const override;
  uint64_t hashOf(int64_t other) const override;
  CollectiveText textOf(int64_t other) const override;
  uint64_t meetingsOf(int64_t other) const override;

  ProcessGroup &group;
  std::map<const Collective *, CollectiveText> texts; ///< of the calls so far, so that later steps allocate nothing
};

/// What the ranks of one communicator share.
class ProcessGroup final : public CommunicatorGroup {
public:
  ProcessGroup(std::string name, const RanksHere &here, std::shared_ptr<Control> control,
               std::vector<std::shared_ptr<char>> arenas, AbortState &abort, const CommunicatorOptions &options,
               int spins)
      : name(std::move(name)), here(here), control(std::move(control)), arenas(std::move(arenas)), abort(abort),
        timeout(options.timeout), spins(spins) {
    // An error of this process is one of all; the block outlives the group for whoever still tells.
    abort.onFailure([block = this->control](const Status &status) { block->fail(status); });
    for (int64_t rank = here.first; rank < here.end(); ++rank)
      endpoints.push_back(std::make_unique<ProcessCommunicator>(*this, rank));
    watcher = std::thread([this] { watch(); });
  }
  ~ProcessGroup() override {
    isClosing = true;
    watcher.join();
  }
  Communicator &endpoint(int64_t rank) override { return *endpoints[here.indexOf(rank)]; }

  std::string name;
  RanksHere here;
  std::shared_ptr<Control> control;
  std::vector<std::shared_ptr<char>> arenas; ///< of all ranks
  AbortState &abort;
  Clock::duration timeout;
  int spins;

private:
  /// What waits in this process for something else than a collective hears of errors, too.
  void watch() {
    for (; !isClosing; std::this_thread::sleep_for(milliseconds(20)))
      if (Status status = control->error(); !status.ok())
        return abort.fail(status);
  }

  std::vector<std::unique_ptr<ProcessCommunicator>> endpoints;
  std::atomic<bool> isClosing = false;
  std::thread watcher;
};

/// The processes, met once for all that this one does with them.
struct Job {
  std::unique_ptr<Rendezvous> met;
  std::shared_ptr<Peers> peers;
  int64_t exchanges = 0; ///< so far: their names, the same everywhere, since all processes make the same calls

  std::string nextName() { return "exchange" + std::to_string(exchanges++); }
};

/// The arena of a rank here.
struct OwnArena {
  Descriptor file;
  std::weak_ptr<char> memory;
  int64_t bytes = 0;
};

class ProcessFactory final : public CommunicatorFactory {
public:
  ProcessFactory(std::shared_ptr<Job> job, Clock::duration timeout)
      : job(std::move(job)), met(*this->job->met), timeout(timeout) {}

  Status makeBox();
  int64_t numProcesses() const override { return met.world(); }
  int64_t process() const override { return met.rank(); }
  Expected<RanksHere> ranksHere(int64_t total) const override;
  Expected<std::shared_ptr<char>> allocateArena(int64_t rank, int64_t bytes) override;
  Status shareArenas(const RanksHere &ranks) override;
  char *arenaOf(int64_t rank) const override { return arenas[static_cast<size_t>(rank)].get(); }
  bool hasAllArenas() const override { return !arenas.empty(); }
  void finishStep() override { boxControl->finishStep(met.rank()); }
  Status awaitSteps(const AbortState &abort) override;
  Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks, AbortState &abort,
                                                    const CommunicatorOptions &options) override;
  Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) override;
  Status gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                Clock::duration patience) override;

private:
  Expected<std::shared_ptr<char>> makeBlock(const std::string &name, int64_t bytes, std::vector<std::string> &lines,
                                            const std::string &line);
  Expected<std::shared_ptr<char>> mapArena(int64_t rank, const std::string &line, const RanksHere &ranks);
  Status meetAll(const AbortState &abort, Clock::duration patience);
  Status check(WaitResult result, const AbortState &abort, Clock::duration patience);

  std::shared_ptr<Job> job;
  Rendezvous &met;
  Clock::duration timeout;
  std::map<int64_t, OwnArena> own;           ///< by rank
  std::vector<std::shared_ptr<char>> arenas; ///< of all ranks, once they are shared
  // For share() and gather(): a block with one rank for each process, and a box of bytes.
  std::shared_ptr<char> box; ///< its parts by process, in gather()
  std::shared_ptr<Control> boxControl;
};

constexpr int64_t kBoxBytes = 1 << 20;

/// What only the processes that can map each other's memory have in common.
std::string getHostId() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  char space[64] = {};
  if (::readlink("/proc/self/ns/pid", space, sizeof(space) - 1) > 0)
    id += std::string(" ") + space;
  return id;
}

} // namespace

//===----------------------------------------------------------------------===//
// One rank's end
//===----------------------------------------------------------------------===//

ProcessCommunicator::ProcessCommunicator(ProcessGroup &group, int64_t rank)
    : RankOrderCommunicator(rank, group.here.total, group.name, group.abort, group.timeout), group(group) {}

const char *ProcessCommunicator::bufferOf(int64_t other, size_t index) const {
  return group.arenas[static_cast<size_t>(other)].get() + group.control->slot(other).offsets[index];
}

uint64_t ProcessCommunicator::hashOf(int64_t other) const { return group.control->slot(other).hash; }

CollectiveText ProcessCommunicator::textOf(int64_t other) const {
  const SharedSlot &slot = group.control->slot(other);
  return {slot.text.get(), slot.location.get(), slot.id, slot.traceHash};
}

uint64_t ProcessCommunicator::meetingsOf(int64_t other) const { return group.control->slot(other).meetings.load(); }

Status ProcessCommunicator::publish(const Collective &call, void *const *buffers, size_t count) {
  if (count > kMostBuffers)
    return Status::failed("a collective of " + std::to_string(count) + " buffers; processes share up to " +
                              std::to_string(kMostBuffers),
                          static_cast<int32_t>(rank), call.id, call.location);
  auto [text, isNew] = texts.try_emplace(&call);
  if (isNew)
    text->second = call.toText();
  SharedSlot &slot = group.control->slot(rank);
  slot.hash = call.hash;
  slot.traceHash = call.traceHash;
  slot.id = call.id;
  slot.text.set(text->second.text);
  slot.location.set(text->second.location);
  const char *arena = group.arenas[static_cast<size_t>(rank)].get();
  for (size_t i = 0; i < count; ++i)
    slot.offsets[i] = static_cast<uint64_t>(static_cast<const char *>(buffers[i]) - arena);
  return Status::success();
}

Status ProcessCommunicator::meet(const Collective &call) {
  switch (group.control->meet(rank, group.spins, abort, Clock::now() + timeout)) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::TimedOut:
    group.control->fail(timedOut(call));
    break;
  case WaitResult::Aborted:
    break;
  }
  // One error for all: whichever was first in the block. One of this process goes there, too.
  if (abort.isRaised())
    group.control->fail(abort.status());
  abort.fail(group.control->error());
  return abort.status();
}

//===----------------------------------------------------------------------===//
// The processes
//===----------------------------------------------------------------------===//

/// Maps a block that the process of rank 0 makes. `lines` gets what each process says with it.
Expected<std::shared_ptr<char>> ProcessFactory::makeBlock(const std::string &name, int64_t bytes,
                                                          std::vector<std::string> &lines, const std::string &line) {
  Descriptor file;
  if (met.rank() == 0) {
    Expected<Descriptor> made = makeSharedFile(bytes);
    if (!made)
      return made.error();
    file = std::move(*made);
  }
  Expected<std::vector<std::string>> all =
      met.exchange(name, (met.rank() == 0 ? getSharedName(file) : "-") + "\n" + line);
  if (!all)
    return all.error();
  std::string source = all->front().substr(0, all->front().find('\n'));
  for (const std::string &text : *all)
    lines.push_back(text.substr(text.find('\n') + 1));
  if (met.rank() != 0) {
    Expected<Descriptor> opened = openSharedFile(source);
    if (!opened)
      return opened.error();
    file = std::move(*opened);
  }
  Expected<std::shared_ptr<char>> memory = mapSharedFile(file, bytes);
  if (!memory)
    return memory;
  // Until all have opened it, the file stays open where it was made.
  Expected<std::vector<std::string>> opened = met.exchange(name + "/opened", "");
  return opened ? memory : Expected<std::shared_ptr<char>>(opened.error());
}

Status ProcessFactory::makeBox() {
  std::vector<std::string> lines;
  int64_t bytes = Control::sizeFor(met.world());
  Expected<std::shared_ptr<char>> memory = makeBlock(job->nextName(), bytes + kBoxBytes, lines, "");
  if (!memory)
    return memory.error();
  boxControl = std::make_shared<Control>(*memory, met.world(), 1, job->peers);
  box = std::shared_ptr<char>(*memory, memory->get() + bytes);
  return Status::success();
}

Expected<RanksHere> ProcessFactory::ranksHere(int64_t total) const {
  int64_t world = met.world();
  if (total % world != 0)
    return Status::badInput("the artifact has " + std::to_string(total) + (total == 1 ? " rank" : " ranks") +
                            ", which " + std::to_string(world) +
                            " processes do not share evenly; compile for a multiple of the processes, or start as many "
                            "as divide the ranks");
  return RanksHere{total, met.rank() * (total / world), total / world};
}

Expected<std::shared_ptr<char>> ProcessFactory::allocateArena(int64_t rank, int64_t bytes) {
  Expected<Descriptor> file = makeSharedFile(bytes);
  if (!file)
    return file.error();
  Expected<std::shared_ptr<char>> memory = mapSharedFile(*file, bytes);
  if (memory)
    own[rank] = {std::move(*file), *memory, bytes};
  return memory;
}

/// The arena of any rank, from the line of its process: for each of its ranks "PID:FD BYTES".
Expected<std::shared_ptr<char>> ProcessFactory::mapArena(int64_t rank, const std::string &line,
                                                         const RanksHere &ranks) {
  if (ranks.has(rank))
    return own[rank].memory.lock();
  std::istringstream words(line);
  std::string name;
  int64_t bytes = 0;
  for (int64_t i = 0; i <= rank % ranks.count; ++i)
    words >> name >> bytes;
  Expected<Descriptor> file = openSharedFile(name);
  if (!file)
    return file.error();
  return mapSharedFile(*file, bytes);
}

Status ProcessFactory::shareArenas(const RanksHere &ranks) {
  std::string mine;
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank)
    mine += getSharedName(own[rank].file) + " " + std::to_string(own[rank].bytes) + " ";
  std::string exchange = job->nextName();
  Expected<std::vector<std::string>> lines = met.exchange(exchange, mine);
  if (!lines)
    return lines.error();
  arenas.clear();
  for (int64_t rank = 0; rank < ranks.total; ++rank) {
    Expected<std::shared_ptr<char>> arena =
        mapArena(rank, (*lines)[static_cast<size_t>(ranks.processOf(rank))], ranks);
    if (!arena)
      return arena.error();
    arenas.push_back(std::move(*arena));
  }
  // Until all have mapped them, the files stay open.
  Expected<std::vector<std::string>> mapped = met.exchange(exchange + "/mapped", "");
  return mapped ? Status::success() : mapped.error();
}

Expected<std::unique_ptr<CommunicatorGroup>> ProcessFactory::make(const std::string &name, const RanksHere &ranks,
                                                                  AbortState &abort,
                                                                  const CommunicatorOptions &options) {
  std::vector<std::string> lines;
  Expected<std::shared_ptr<char>> memory = makeBlock(job->nextName(), Control::sizeFor(ranks.total), lines, "");
  if (!memory)
    return memory.error();
  auto control = std::make_shared<Control>(std::move(*memory), ranks.total, ranks.count, job->peers);
  // Threads of all processes share the cores of this host.
  int spins = spinsFor(options.threads * met.world());
  return std::unique_ptr<CommunicatorGroup>(
      std::make_unique<ProcessGroup>(name, ranks, std::move(control), arenas, abort, options, spins));
}

/// The end of a wait for `patience`; as long as the others live, where that is the longest there is.
static Clock::time_point after(Clock::duration patience) {
  return patience == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + patience;
}

/// What a wait for other processes ended with.
Status ProcessFactory::check(WaitResult result, const AbortState &abort, Clock::duration patience) {
  switch (result) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::TimedOut:
    boxControl->fail(Status::failed("time-out after " +
                                    formatNumber(std::chrono::duration<double>(patience).count(), 6) +
                                    " s between steps: process " + boxControl->listBehind(met.rank()) +
                                    " did not come to where the others wait"));
    break;
  case WaitResult::Aborted:
    break;
  }
  return abort.isRaised() ? abort.status() : boxControl->error();
}

Status ProcessFactory::meetAll(const AbortState &abort, Clock::duration patience) {
  return check(boxControl->meet(met.rank(), 50, abort, after(patience)), abort, patience);
}

Status ProcessFactory::awaitSteps(const AbortState &abort) {
  // The others may be in a collective that times out; then that is the error.
  Clock::duration patience = 2 * timeout;
  return check(boxControl->awaitSteps(met.rank(), abort, Clock::now() + patience), abort, patience);
}

Status ProcessFactory::share(int64_t process, void *data, int64_t bytes, const AbortState &abort) {
  bool isSource = process == met.rank();
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

Status ProcessFactory::gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                              Clock::duration patience) {
  int64_t room = kBoxBytes / met.world();
  for (int64_t at = 0; at < bytes; at += room) {
    auto count = static_cast<size_t>(std::min(room, bytes - at));
    std::memcpy(box.get() + met.rank() * room, static_cast<const char *>(mine) + at, count);
    if (Status status = meetAll(abort, patience); !status.ok())
      return status;
    for (int64_t from = 0; from < met.world(); ++from)
      std::memcpy(static_cast<char *>(all) + from * bytes + at, box.get() + from * room, count);
    if (Status status = meetAll(abort, patience); !status.ok())
      return status;
  }
  return Status::success();
}

/// Meets the processes, and makes sure that they can share memory.
static Expected<std::shared_ptr<Job>> meetProcesses(const Launch &launch, Clock::duration timeout) {
  Expected<std::unique_ptr<Rendezvous>> met =
      Rendezvous::meet(launch, std::chrono::duration_cast<milliseconds>(timeout));
  if (!met)
    return met.error();
  auto job = std::make_shared<Job>();
  job->met = std::move(*met);
  Expected<std::vector<std::string>> hosts = job->met->exchange("host", getHostId());
  if (!hosts)
    return hosts.error();
  for (size_t process = 1; process < hosts->size(); ++process)
    if ((*hosts)[process] != hosts->front())
      return Status::badInput("rank " + std::to_string(process) +
                              " is on another host than rank 0 (or in another container); ranks on several hosts are "
                              "not supported yet, so start all processes on one");
  Expected<std::vector<std::string>> names = job->met->exchange("process", std::to_string(::getpid()));
  if (!names)
    return names.error();
  std::vector<int32_t> ids;
  for (const std::string &name : *names)
    ids.push_back(static_cast<int32_t>(std::atol(name.c_str())));
  Expected<std::shared_ptr<Peers>> peers = Peers::watch(ids, static_cast<size_t>(launch.rank));
  if (!peers)
    return peers.error();
  job->peers = std::move(*peers);
  return job;
}

void registerProcesses(const Launch &launch) {
  auto kept = std::make_shared<std::shared_ptr<Job>>();
  registerCommunicators("process",
                        [launch, kept](Clock::duration timeout) -> Expected<std::shared_ptr<CommunicatorFactory>> {
                          if (!*kept) {
                            Expected<std::shared_ptr<Job>> job = meetProcesses(launch, timeout);
                            if (!job)
                              return job.error();
                            *kept = std::move(*job);
                          }
                          auto factory = std::make_shared<ProcessFactory>(*kept, timeout);
                          if (Status status = factory->makeBox(); !status.ok())
                            return status;
                          return std::shared_ptr<CommunicatorFactory>(std::move(factory));
                        });
}

} // namespace spmd::runtime
