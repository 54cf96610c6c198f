//===- Communicator.h - The interface of all collectives ---------*- C++ -*-===//
//
// One object per communicator and rank. Backends differ in how bytes travel;
// what a collective means is the same everywhere:
//
//  - reductions combine contributions in rank order 0, 1, 2, ..., so results do
//    not depend on timing; f16 and bf16 accumulate in f32;
//  - when a call returns, the send buffer may be written again;
//  - ranks that call different collectives get an error that names both, and a
//    rank that does not come is an error after the time-out, never a hang.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_COMMUNICATOR_H
#define SPMD_RUNTIME_CORE_COMMUNICATOR_H

#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Core/Status.h"

namespace spmd::runtime {

/// What all ranks must agree on.
struct Collective {
  const Command *command = nullptr; ///< op, dtype, counts, kinds, location
  int32_t id = -1;                  ///< position of the command in the plan
  uint64_t traceHash = 0;           ///< of the program
};

/// How time-out errors end: "rank 2 did not come" is no fault of a rank that is only slow.
inline constexpr char kMoreTime[] =
    "; a rank that is only slow is given more time by spmd-run --timeout=SECONDS, or timeout=SECONDS in Python";

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Every rank sends count elements; recv gets ranks × count in rank order.
  /// In place when send is recv + rank × count.
  virtual Status allGather(const Collective &call, const void *send, void *recv) = 0;

  /// send has ranks × count elements; recv gets the combined chunk of this
  /// rank. In place when recv is send + rank × count.
  virtual Status reduceScatter(const Collective &call, const void *send, void *recv) = 0;

  /// Combines each of the buffers in place: one message for all of them.
  virtual Status allReduce(const Collective &call, void *const *buffers) = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_COMMUNICATOR_H
