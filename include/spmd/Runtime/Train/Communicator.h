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
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"

#include <chrono>
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

  /// Every rank sends count elements; recv gets ranks × count in rank order.
  /// In place when send is recv + rank × count.
  virtual Status allGather(const Collective &call, const void *send, void *recv, Stream *stream) = 0;

  /// send has ranks × count elements; recv gets the combined chunk of this
  /// rank. In place when recv is send + rank × count.
  virtual Status reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream) = 0;

  /// Combines each of the buffers in place: one message for all of them.
  virtual Status allReduce(const Collective &call, void *const *buffers, Stream *stream) = 0;
};

/// One communicator: an end for each rank here.
class CommunicatorGroup {
public:
  virtual ~CommunicatorGroup() = default;
  virtual Communicator &endpoint(int64_t rank) = 0;
};

struct CommunicatorOptions {
  /// A collective that is not complete so long after a rank reached it fails.
  std::chrono::steady_clock::duration timeout = std::chrono::seconds(60);
  /// Threads of this process that compute or wait: with more of them than cores a waiting one sleeps early.
  int64_t threads = 1;
};

/// The processes that run a job together. All of them make the same calls in the same order.
class CommunicatorFactory {
public:
  virtual ~CommunicatorFactory() = default;

  /// Which ranks of an artifact for `total` ranks this process holds; an error when the job has another number.
  virtual Expected<RanksHere> ranksHere(int64_t total) const = 0;

  /// Memory for the arena of `rank`, which is here, that ranks of other processes read in place: zeroed, aligned as a
  /// page is. It is given back with its last owner. Null: any memory will do.
  virtual Expected<std::shared_ptr<char>> allocateArena(int64_t rank, int64_t bytes) { return std::shared_ptr<char>(); }

  /// Makes the communicator `name` of a program. Errors go both ways through `abort`, which outlives it: one of this
  /// process is told to the others, and theirs are raised in it.
  virtual Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                            AbortState &abort, const CommunicatorOptions &options) = 0;

  /// Gives every process the host bytes that the one of `rank` has. Ends with the error of `abort` when that is raised.
  virtual Status share(int64_t rank, void *data, int64_t bytes, const AbortState &abort) = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_COMMUNICATOR_H
