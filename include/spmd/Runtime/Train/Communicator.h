//===- Communicator.h - The interface of all collectives ---------*- C++ -*-===//
//
// How ranks reach each other. What a collective means is the same everywhere:
//
//  - reductions combine contributions in rank order 0, 1, 2, ..., so results do
//    not depend on timing; f16 and bf16 accumulate in f32;
//  - ranks that call different collectives get an error that names both, and a
//    rank that does not come is an error after the time-out, never a hang;
//  - the first error of any rank ends all of them, in every process, with the
//    same sentence.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_TRAIN_COMMUNICATOR_H
#define SPMD_RUNTIME_TRAIN_COMMUNICATOR_H

#include "spmd/Runtime/Core/Collective.h"
#include "spmd/Runtime/Core/RankGroups.h"
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace spmd::runtime {

class AbortState;

/// A queue of a device: what is issued to it runs in order.
class Stream {
public:
  virtual ~Stream() = default;

  /// Waits until all that was issued has run.
  virtual Status wait() = 0;
};

/// One rank's end of one communicator. Addresses are those of RankMemory::addressOf, and a call's description lives as
/// long as the communicator.
///
/// Of a device that has streams, a call issues the collective to `stream` and returns, and the buffers belong to it
/// until the stream has come past it; what goes wrong then is found in the AbortState. Otherwise `stream` is null, and
/// the collective is done when the call returns.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Runs a collective; one that it does not have is an error (`collectiveMissing`). `buffers` are
  ///  - of AllGather what is sent, count elements, and what receives those of all ranks, in the group's order;
  ///    what is sent may be this rank's part of what receives;
  ///  - of ReduceScatter what is sent, group size × count elements, and what receives the combined part of this rank's
  ///    position, which may be that part of what is sent;
  ///  - of AllReduce the buffers that are combined in place, in one message, as many as there are counts.
  /// What they point to is as above; they themselves are read before it returns.
  virtual Status run(const Collective &call, void *const *buffers, Stream *stream) = 0;
};

/// One communicator: an end for each rank here, which reaches the ranks of its group.
class CommunicatorGroup {
public:
  virtual ~CommunicatorGroup() = default;
  virtual Communicator &endpoint(int64_t rank) = 0;

  /// Makes `status` the error of all processes, or takes theirs where one is there before: one sentence for all. False:
  /// there are no others, and nothing is done.
  virtual bool failEverywhere(const Status &status) { return false; }
};

struct CommunicatorOptions {
  /// A collective that is not complete so long after a rank reached it fails.
  std::chrono::steady_clock::duration timeout = std::chrono::seconds(60);
  /// Threads of this process that compute or wait: with more of them than cores a waiting one sleeps early.
  int64_t threads = 1;
  /// The most thread blocks that a collective may hold on a device; 0: as the communicator likes.
  int64_t maxBlocks = 0;
};

/// The processes that run a job together. All of them make the same calls in the same order, but for those that say
/// otherwise.
class CommunicatorFactory {
public:
  virtual ~CommunicatorFactory() = default;

  /// How many processes the job has, and which of them this is. Each holds the same number of ranks, in blocks.
  virtual int64_t numProcesses() const = 0;
  virtual int64_t process() const = 0;

  /// The same of those on this host.
  virtual int64_t numLocalProcesses() const { return 1; }
  virtual int64_t localProcess() const { return 0; }

  /// Which ranks of an artifact for `total` ranks this process holds; an error when the job has another number.
  virtual Expected<RanksHere> ranksHere(int64_t total) const = 0;

  /// Memory for the arena of `rank`, which is here, that ranks of other processes read in place: zeroed, aligned as a
  /// page is. It is given back with its last owner. Null: any memory will do.
  virtual Expected<std::shared_ptr<char>> allocateArena(int64_t rank, int64_t bytes) { return std::shared_ptr<char>(); }

  /// Makes the arenas of the ranks here, which allocateArena made anew, known to the other processes, and theirs here.
  virtual Status shareArenas(const RanksHere &ranks) { return Status::success(); }

  /// The arena of a rank of another process, where this one reaches it; else null, of all or of none of them. A process
  /// looks alone, after awaitSteps.
  virtual char *arenaOf(int64_t rank) const { return nullptr; }
  virtual bool hasAllArenas() const { return false; }

  /// Reads bytes of the arena of a rank here, after the steps that were issued; any thread may call it.
  using Reader = std::function<Status(int64_t rank, int64_t offset, void *destination, int64_t bytes)>;

  /// Where arenas cannot be mapped: lets the other processes read those of the ranks here. All processes call it, and
  /// stopReading() when nobody is to read any more; that waits until all have come so far, or a failure.
  virtual Status startReading(const RanksHere &ranks, Reader read) { return Status::success(); }
  virtual void stopReading(const AbortState &abort) {}

  /// Whether a process reads the arenas of all ranks alone, and how it reads one that is not mapped.
  virtual bool readsAlone() const { return hasAllArenas(); }
  virtual Status readArena(int64_t rank, int64_t offset, void *destination, int64_t bytes, const AbortState &abort) {
    return Status::failed("the arena of rank " + std::to_string(rank) + " is on another host");
  }

  /// A process says that it has done one more step, and waits until all have done as many as it has. Each alone.
  virtual void finishStep() {}
  virtual Status awaitSteps(const AbortState &abort) { return Status::success(); }

  /// The same of writes of the state, where each process writes to the ranks here: until all have done as many since
  /// they last met, or are where they meet next. Waits for them for `patience`.
  virtual void finishWrite() {}
  virtual Status awaitWrites(const AbortState &abort, std::chrono::steady_clock::duration patience) {
    return Status::success();
  }

  /// The error that another process of this host has ended, where one has: it may have nothing more to do.
  virtual Status findEnded(const RanksHere &ranks) const { return Status::success(); }

  /// That communicators of it run collectives of arenas in the host's memory. An error says what helps where they only
  /// carry errors, among processes whose devices have collectives of their own.
  virtual Status checkHostCollectives() const { return Status::success(); }

  /// Makes the communicator `name` of a program, in which the ranks of each of `groups` meet. Errors go both ways
  /// through `abort`, which outlives it: one of this process is told to the others, and theirs are raised in it.
  virtual Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                            const RankGroups &groups, AbortState &abort,
                                                            const CommunicatorOptions &options) = 0;

  /// Gives every process the host bytes that `process` has. Ends with the error of `abort` when that is raised.
  virtual Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) = 0;

  /// Gives every process what all of them have: `bytes` of each, in their order. Waits for the others for `patience`.
  virtual Status gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                        std::chrono::steady_clock::duration patience);
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_COMMUNICATOR_H
