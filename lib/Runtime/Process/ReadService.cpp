//===- ReadService.cpp ----------------------------------------------------===//

#include "ReadService.h"

#include <linux/futex.h>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>

namespace spmd::runtime {

namespace {
constexpr int64_t kRoom = 1 << 20;

enum State : uint32_t {
  kFree,
  kTaken,     ///< somebody writes a request
  kRequested, ///< the process is to answer it
  kAnswered,
};

/// Waits for `word` to be another than `seen`, in a slice after which the caller looks around.
void waitFor(std::atomic<uint32_t> &word, uint32_t seen) {
  timespec slice = {0, 5'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &slice, nullptr, 0);
}
void set(std::atomic<uint32_t> &word, uint32_t value) {
  word.store(value);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
}
} // namespace

/// What a process is asked for. Whoever asks has the box to itself until it has the answer.
struct alignas(64) ReadService::Box {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> stopped; ///< the process reads no more
  int64_t rank, offset, bytes;
  int32_t code;
  SharedText<1024> message;
  alignas(64) char data[kRoom];
};

int64_t ReadService::sizeFor(int64_t processes) { return processes * static_cast<int64_t>(sizeof(Box)); }

ReadService::ReadService(std::shared_ptr<char> given, const RanksHere &ranks, int64_t self,
                         std::shared_ptr<Peers> peers, CommunicatorFactory::Reader read)
    : memory(std::move(given)), ranks(ranks), self(self), peers(std::move(peers)), reader(std::move(read)) {
  server = std::thread([this] { serve(); });
}

ReadService::~ReadService() { stop({}); }

ReadService::Box &ReadService::boxOf(int64_t process) const {
  return reinterpret_cast<Box *>(memory.get())[process];
}

void ReadService::serve() {
  Box &box = boxOf(self);
  while (!isClosing) {
    uint32_t state = box.state.load();
    if (state != kRequested) {
      waitFor(box.state, state);
      continue;
    }
    Status status = box.bytes >= 0 && box.bytes <= kRoom && ranks.has(box.rank)
                        ? reader(box.rank, box.offset, box.data, box.bytes)
                        : Status::failed("a read of another process is damaged");
    box.code = static_cast<int32_t>(status.code);
    box.message.set(status.message);
    set(box.state, kAnswered);
  }
}

Status ReadService::readPart(Box &box, int64_t rank, int64_t offset, char *destination, int64_t bytes,
                             const AbortState &abort) {
  int64_t process = ranks.processOf(rank);
  auto check = [&]() -> Status {
    if (abort.isRaised())
      return abort.status();
    if (int64_t ended = peers->findEnded(); ended == process)
      return endedWithoutAWord(ranks, process, peers->getId(static_cast<size_t>(process)));
    return Status::success();
  };
  for (uint32_t free = kFree; !box.state.compare_exchange_strong(free, kTaken); free = kFree) {
    waitFor(box.state, free);
    if (Status status = check(); !status.ok())
      return status;
  }
  box.rank = rank;
  box.offset = offset;
  box.bytes = bytes;
  set(box.state, kRequested);
  while (box.state.load() == kRequested) {
    waitFor(box.state, kRequested);
    if (Status status = check(); !status.ok())
      return status; // the box is left as it is: nobody answers
  }
  auto code = static_cast<StatusCode>(box.code);
  Status status = code == StatusCode::Ok ? Status::success() : Status::failed(box.message.get());
  if (status.ok())
    std::memcpy(destination, box.data, static_cast<size_t>(bytes));
  set(box.state, kFree);
  return status;
}

Status ReadService::read(int64_t rank, int64_t offset, void *destination, int64_t bytes, const AbortState &abort) {
  Box &box = boxOf(ranks.processOf(rank));
  for (int64_t at = 0; at < bytes; at += kRoom)
    if (Status status = readPart(box, rank, offset + at, static_cast<char *>(destination) + at,
                                 std::min(kRoom, bytes - at), abort);
        !status.ok())
      return status;
  return Status::success();
}

void ReadService::stop(Clock::duration patience) {
  if (!server.joinable())
    return;
  set(boxOf(self).stopped, 1);
  auto haveAll = [&] {
    for (int64_t process = 0; process < ranks.processes(); ++process)
      if (!boxOf(process).stopped.load())
        return false;
    return true;
  };
  for (Clock::time_point end = Clock::now() + patience;
       !haveAll() && Clock::now() < end && peers->findEnded() < 0;)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  isClosing = true;
  server.join();
}

} // namespace spmd::runtime
