//===- Control.h - Where the ranks of several processes meet ----*- C++ -*-===//
//
// [Note: what processes share] Of each communicator one block of shared memory:
// a counter of arrivals and a slot for each rank's call; and of all of them the
// first error of any process. Everything in it is a plain value or a lock-free atomic, offsets
// instead of pointers, and nothing in it is trusted to be well-formed text: a
// process may end at any point.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_CONTROL_H
#define SPMD_LIB_RUNTIME_PROCESS_CONTROL_H

#include "Descriptor.h"
#include "spmd/Runtime/Core/Collective.h"
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Host/Progress.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// Text of at most N - 1 bytes.
template <size_t N>
struct SharedText {
  char bytes[N];

  void set(const std::string &text) {
    size_t length = text.copy(bytes, N - 1);
    bytes[length] = 0;
  }
  std::string get() const { return std::string(bytes, ::strnlen(bytes, N)); }
};

constexpr size_t kMostBuffers = 1024;

/// What one rank publishes; on cache lines of its own.
struct alignas(64) SharedSlot {
  std::atomic<uint64_t> meetings; ///< handshakes this rank has reached
  std::atomic<uint64_t> steps;    ///< that this rank has done
  std::atomic<uint64_t> writes;   ///< of the state that it has done since its last handshake
  uint64_t hash;                  ///< of its call
  uint64_t traceHash;
  int32_t id;
  SharedText<1024> text;
  SharedText<512> location;
  uint64_t offsets[kMostBuffers]; ///< of its buffers, in its arena
};

/// The first error of a job on this host, whichever communicator has found it; a Status that processes can read.
struct SharedError {
  std::atomic<uint32_t> state; ///< 0 none, 1 being written, 2 there
  int32_t finder;              ///< the process that has found it; 0: one on another host
  int32_t code, rank, command;
  SharedText<8192> message;
  SharedText<1024> location;
};

struct alignas(64) ControlBlock {
  std::atomic<uint64_t> arrivals; ///< of all ranks at all handshakes
  alignas(64) std::atomic<uint32_t> wake;
  std::atomic<uint32_t> sleepers;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

/// The other processes of the job, as far as they are alive.
class Peers {
public:
  /// `ids` by process, 0 on another host; this one is `self`.
  static Expected<std::shared_ptr<Peers>> watch(const std::vector<int32_t> &ids, size_t self);

  /// A process that has ended, of all or of some; -1: none.
  int64_t findEnded() const;
  int64_t findEnded(const std::vector<size_t> &processes) const;
  int32_t getId(size_t process) const { return ids[process]; }

private:
  Peers() = default;
  std::vector<int32_t> ids;
  std::vector<Descriptor> handles; ///< pidfd; none of this process
};

/// That the process of some ranks is gone.
Status endedWithoutAWord(const RanksHere &ranks, int64_t process, int32_t id);

/// One block, as this process sees it.
class Control {
public:
  /// Bytes of the block of `ranks`.
  static int64_t sizeFor(int64_t ranks);

  /// `memory`, for as many ranks as there are, is zeroed when the first process makes its Control. `members` are the
  /// ranks that meet, in order; `ranksOfProcess` are in each process. `firstError` is zeroed memory of all communicators.
  Control(std::shared_ptr<char> memory, std::shared_ptr<SharedError> firstError, int64_t ranks,
          std::vector<int64_t> members, int64_t ranksOfProcess, std::shared_ptr<Peers> peers);

  SharedSlot &slot(int64_t rank) { return slots[rank]; }

  /// Counts one more handshake of `rank` and waits until all members have come as far. An error of any process ends the
  /// wait, and so does a process that ends. `deadline` passing is TimedOut.
  WaitResult meet(int64_t rank, int spins, const AbortState &abort, Clock::time_point deadline);

  /// Counts one more step that `rank` has done, and waits until all members have done as many.
  void finishStep(int64_t rank);
  WaitResult awaitSteps(int64_t rank, const AbortState &abort, Clock::time_point deadline);

  /// Counts one more write of `rank`, and waits until all members have done as many since all met, or have come to
  /// the next handshake, behind which `rank` waits for no write that another has left out.
  void finishWrite(int64_t rank);
  WaitResult awaitWrites(int64_t rank, const AbortState &abort, Clock::time_point deadline);

  /// The members that have met, done steps or written less often than `rank`: "1, 3".
  std::string listBehind(int64_t rank) const;

  /// Makes `status` the error of all processes, unless there is one.
  void fail(const Status &status);
  /// The error of all processes, marked where another one has found it; success when there is none.
  Status error() const;

private:
  bool isEnded();
  void wakeAll();
  void wakeSleepers();
  bool hasWritten(int64_t other, int64_t rank) const;
  template <typename Condition>
  WaitResult await(const Condition &isThere, int spins, const AbortState &abort, Clock::time_point deadline);

  std::shared_ptr<char> memory;
  std::shared_ptr<SharedError> firstError;
  ControlBlock &block;
  SharedSlot *slots;
  int64_t ranks;
  std::vector<int64_t> members;
  int64_t ranksOfProcess;
  std::shared_ptr<Peers> peers;
  std::vector<size_t> processes; ///< of the members: others may be done already, where ranks meet in groups
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_CONTROL_H
