//===- HostRanks.cpp - The ranks of a host, in its processes --------------===//

#include "HostRanks.h"

namespace spmd::runtime {

HostRanks::HostRanks(std::string name, const RanksHere &here, std::vector<int64_t> members,
                     std::shared_ptr<Control> given, std::vector<std::shared_ptr<char>> arenas, AbortState &abort,
                     Clock::duration timeout, int spins)
    : name(std::move(name)), here(here), members(std::move(members)), abort(abort), timeout(timeout),
      control(std::move(given)), arenas(std::move(arenas)), spins(spins), texts(static_cast<size_t>(here.count)) {
  // An error of this process is one of all; the block outlives the group for whoever still tells.
  abort.onFailure([block = control](const Status &status) { block->fail(status); });
  watcher = std::thread([this] { watch(); });
}

HostRanks::~HostRanks() {
  isClosing = true;
  watcher.join();
}

/// What waits in this process for something else than a collective hears of errors, too.
void HostRanks::watch() {
  for (; !isClosing; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
    if (Status status = control->error(); !status.ok())
      return abort.fail(status);
}

CollectiveText HostRanks::textOf(int64_t member) const {
  const SharedSlot &slot = control->slot(member);
  return {slot.text.get(), slot.location.get(), slot.id, slot.traceHash};
}

Status HostRanks::publish(int64_t rank, const Collective &call, void *const *buffers, size_t count) {
  if (count > kMostBuffers)
    return Status::failed("a collective of " + std::to_string(count) + " buffers; processes share up to " +
                              std::to_string(kMostBuffers),
                          static_cast<int32_t>(rank), call.id, call.location);
  // A failure ends a call of this rank while others, who had met it, still read what it published then.
  if (abort.isRaised())
    return abort.status();
  auto [text, isNew] = texts[here.indexOf(rank)].try_emplace(&call);
  if (isNew)
    text->second = call.toText();
  SharedSlot &slot = control->slot(rank);
  slot.hash = call.hash;
  slot.traceHash = call.traceHash;
  slot.id = call.id;
  slot.text.set(text->second.text);
  slot.location.set(text->second.location);
  const char *arena = arenas[static_cast<size_t>(rank)].get();
  for (size_t i = 0; i < count; ++i)
    slot.offsets[i] = static_cast<uint64_t>(static_cast<const char *>(buffers[i]) - arena);
  return Status::success();
}

void HostRanks::fail(const Status &status) {
  control->fail(status);
  // One error for all: whichever was first in the block.
  abort.fail(control->error());
}

Status HostRanks::meet(int64_t rank, const Collective &call, Clock::duration more) {
  switch (control->meet(rank, spins, abort, Clock::now() + timeout + more)) {
  case WaitResult::Reached:
    return Status::success();
  case WaitResult::TimedOut: {
    std::vector<int64_t> missing;
    for (int64_t member : members)
      if (meetingsOf(member) < meetingsOf(rank))
        missing.push_back(member);
    fail(collectiveTimeOut(name, std::chrono::duration<double>(timeout).count(), missing, call));
    break;
  }
  case WaitResult::Aborted:
    // An error of this process goes into the block, too.
    fail(abort.isRaised() ? abort.status() : control->error());
    break;
  }
  return abort.status();
}

} // namespace spmd::runtime
