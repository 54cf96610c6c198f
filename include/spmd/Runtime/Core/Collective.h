//===- Collective.h - What ranks must agree on --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_COLLECTIVE_H
#define SPMD_RUNTIME_CORE_COLLECTIVE_H

#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// A collective as all ranks must call it.
struct CollectiveKey : Exchange {
  std::vector<std::string> axes; ///< of the mesh, along which the ranks meet; none: all ranks do
};

/// How many collectives may be in flight together on a device, each on a share of it that they have room for together
/// ([Note: in flight]).
inline constexpr int kMostInFlight = 3;

/// What is said of a call that another process made.
struct CollectiveText {
  std::string text; ///< describe()
  std::string location;
  int32_t id = -1;
  uint64_t traceHash = 0;
};

/// One call of it. A value: it can be sent, kept, and compared by its hash.
struct Collective {
  CollectiveKey key;
  int32_t id = -1;        ///< position of the command in the plan
  uint64_t traceHash = 0; ///< of the program
  std::string location;
  uint64_t hash = 0; ///< of key, id and program: ranks that make the same call have the same

  Collective() = default;
  Collective(CollectiveKey key, int32_t id, uint64_t traceHash, std::string location);

  /// "all_gather of unit0 (command 4, f32 [8], at train.py:7)".
  std::string describe() const;
  CollectiveText toText() const { return {describe(), location, id, traceHash}; }
};

/// The calls of a plan's collectives, by the position of the command; of other commands they are empty.
std::vector<Collective> collectivesOf(const Plan &plan, uint64_t traceHash);

/// That two ranks made different calls on `communicator`. All communicators compare every rank with the first of its
/// group and report the lowest one that differs, so that all ranks of the group say the same.
Status collectiveMismatch(const std::string &communicator, int64_t first, const Collective &ofFirst, int64_t rank,
                          const Collective &ofRank);
Status collectiveMismatch(const std::string &communicator, int64_t first, const CollectiveText &ofFirst, int64_t rank,
                          const CollectiveText &ofRank);

/// That communicators of this kind have no such collective.
Status collectiveMissing(const std::string &communicator, const Collective &call);

/// That `missing` ranks did not come to `call` within the time-out.
Status collectiveTimeOut(const std::string &communicator, double seconds, const std::vector<int64_t> &missing,
                         const Collective &call);

/// How time-out errors end: "rank 2 did not come" is no fault of a rank that is only slow.
inline constexpr char kMoreTime[] =
    "; a rank that is only slow is given more time by spmd-run --timeout=SECONDS, or timeout=SECONDS in Python";

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_COLLECTIVE_H
