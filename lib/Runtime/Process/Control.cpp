//===- Control.cpp - Where the ranks of several processes meet ------------===//

#include "Control.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <numeric>
#include <poll.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace spmd::runtime {

//===----------------------------------------------------------------------===//
// Peers
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<Peers>> Peers::watch(const std::vector<int32_t> &ids, size_t self) {
  std::shared_ptr<Peers> peers(new Peers);
  peers->ids = ids;
  for (size_t process = 0; process < ids.size(); ++process) {
    bool isWatched = process != self && ids[process] != 0;
    Descriptor handle(isWatched ? static_cast<int>(::syscall(SYS_pidfd_open, ids[process], 0)) : -1);
    if (isWatched && !handle.isValid())
      return Status::failed("cannot watch process " + std::to_string(ids[process]) + ": " + std::strerror(errno));
    peers->handles.push_back(std::move(handle));
  }
  return peers;
}

int64_t Peers::findEnded() const {
  std::vector<size_t> all(handles.size());
  std::iota(all.begin(), all.end(), 0);
  return findEnded(all);
}

int64_t Peers::findEnded(const std::vector<size_t> &processes) const {
  std::vector<pollfd> entries;
  for (size_t process : processes)
    entries.push_back({handles[process].get(), POLLIN, 0}); // those below 0 are left out by poll
  if (::poll(entries.data(), entries.size(), 0) <= 0)
    return -1;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].revents)
      return static_cast<int64_t>(processes[i]);
  return -1;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

int64_t Control::sizeFor(int64_t ranks) {
  return static_cast<int64_t>(sizeof(ControlBlock) + static_cast<size_t>(ranks) * sizeof(SharedSlot));
}

Control::Control(std::shared_ptr<char> given, std::shared_ptr<SharedError> firstError, int64_t ranks,
                 std::vector<int64_t> members, int64_t ranksOfProcess, std::shared_ptr<Peers> peers)
    : memory(std::move(given)), firstError(std::move(firstError)),
      block(*reinterpret_cast<ControlBlock *>(memory.get())),
      slots(reinterpret_cast<SharedSlot *>(memory.get() + sizeof(ControlBlock))), ranks(ranks),
      members(std::move(members)), ranksOfProcess(ranksOfProcess), peers(std::move(peers)) {
  for (int64_t member : this->members)
    if (size_t process = static_cast<size_t>(member / ranksOfProcess); processes.empty() || processes.back() != process)
      processes.push_back(process);
}

void Control::fail(const Status &status) {
  SharedError &error = *firstError;
  uint32_t none = 0;
  if (!error.state.compare_exchange_strong(none, 1))
    return;
  error.finder = status.isElsewhere ? 0 : ::getpid();
  error.code = static_cast<int32_t>(status.code);
  error.rank = status.rank;
  error.command = status.command;
  error.message.set(status.message);
  error.location.set(status.location);
  error.state.store(2);
  wakeAll();
}

void Control::wakeAll() {
  block.wake.fetch_add(1);
  ::syscall(SYS_futex, &block.wake, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Behind what a sleeper may wait for. Both sides are sequentially consistent: either this one sees the sleeper, or the
/// sleeper sees what was done.
void Control::wakeSleepers() {
  if (block.sleepers.load() != 0)
    wakeAll();
}

Status Control::error() const {
  const SharedError &error = *firstError;
  // Of two that fail at once the second comes while the first still writes; it may also have ended in the middle.
  for (auto deadline = Clock::now() + std::chrono::seconds(1); error.state.load() == 1;) {
    if (Clock::now() >= deadline)
      return Status::failed("another process has failed, and ended before it said why");
    std::this_thread::yield();
  }
  if (error.state.load() == 0)
    return Status::success();
  return {static_cast<StatusCode>(error.code), error.message.get(), error.rank, error.command, error.location.get(),
          error.finder != ::getpid()};
}

Status endedWithoutAWord(const RanksHere &ranks, int64_t process, int32_t id) {
  return Status::failed(ranks.describe(process) + " ended without a word: process " + std::to_string(id) + " is gone",
                        static_cast<int32_t>(process * ranks.count));
}

/// There is an error; a process that has ended without one is made one.
bool Control::isEnded() {
  if (firstError->state.load() == 2)
    return true;
  int64_t process = peers->findEnded(processes);
  if (process < 0 || firstError->state.load() == 2)
    return process >= 0;
  fail(endedWithoutAWord({ranks, 0, ranksOfProcess}, process, peers->getId(static_cast<size_t>(process))));
  return true;
}

WaitResult Control::meet(int64_t rank, int spins, const AbortState &abort, Clock::time_point deadline) {
  slots[rank].writes.store(0); // before it counts: who has met sees none of earlier ones
  uint64_t target = (slots[rank].meetings.fetch_add(1) + 1) * members.size();
  block.arrivals.fetch_add(1);
  wakeSleepers();
  return await([&] { return block.arrivals.load() >= target; }, spins, abort, deadline);
}

void Control::finishStep(int64_t rank) {
  slots[rank].steps.fetch_add(1);
  wakeSleepers();
}

WaitResult Control::awaitSteps(int64_t rank, const AbortState &abort, Clock::time_point deadline) {
  uint64_t target = slots[rank].steps.load();
  auto haveAll = [&] {
    for (int64_t other : members)
      if (slots[other].steps.load() < target)
        return false;
    return true;
  };
  return await(haveAll, 0, abort, deadline);
}

void Control::finishWrite(int64_t rank) {
  slots[rank].writes.fetch_add(1);
  wakeSleepers();
}

/// Whether `other` has done the writes that `rank` has done since all met.
bool Control::hasWritten(int64_t other, int64_t rank) const {
  return slots[other].writes.load() >= slots[rank].writes.load() ||
         slots[other].meetings.load() > slots[rank].meetings.load();
}

WaitResult Control::awaitWrites(int64_t rank, const AbortState &abort, Clock::time_point deadline) {
  auto haveAll = [&] {
    return std::all_of(members.begin(), members.end(), [&](int64_t other) { return hasWritten(other, rank); });
  };
  return await(haveAll, 0, abort, deadline);
}

std::string Control::listBehind(int64_t rank) const {
  std::string list;
  for (int64_t other : members)
    if (slots[other].meetings.load() < slots[rank].meetings.load() ||
        slots[other].steps.load() < slots[rank].steps.load() || !hasWritten(other, rank))
      list += (list.empty() ? "" : ", ") + std::to_string(other);
  return list;
}

template <typename Condition>
WaitResult Control::await(const Condition &isThere, int spins, const AbortState &abort, Clock::time_point deadline) {
  for (int i = 0; i < spins; ++i) {
    if (isThere())
      return WaitResult::Reached;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (int i = 0; i < std::max(100, spins / 2); ++i) {
    if (isThere())
      return WaitResult::Reached;
    std::this_thread::yield();
  }
  // In slices, in which errors are looked for ([Note: waiting] in Progress.h).
  block.sleepers.fetch_add(1);
  WaitResult result = WaitResult::Reached;
  for (bool isLast = false; !isThere();) {
    uint32_t seen = block.wake.load();
    if (isThere())
      break;
    if (isLast) {
      result = isThere() ? WaitResult::Reached : WaitResult::Aborted;
      break;
    }
    if (Clock::now() >= deadline) {
      result = WaitResult::TimedOut;
      break;
    }
    // Who has ended may have come here before: look once more.
    if (abort.isRaised() || isEnded()) {
      isLast = true;
      continue;
    }
    timespec slice = {0, 20'000'000};
    ::syscall(SYS_futex, &block.wake, FUTEX_WAIT, seen, &slice, nullptr, 0);
  }
  block.sleepers.fetch_sub(1);
  return result;
}

} // namespace spmd::runtime
