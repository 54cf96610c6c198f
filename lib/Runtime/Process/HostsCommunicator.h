//===- HostsCommunicator.h - Collectives across hosts -----------*- C++ -*-===//
//
// [Note: across hosts] Ranks of a host share memory, as in ProcessCommunicator.h;
// hosts send each other messages, straight out of and into the ranks' buffers:
//
//   all-gather      a chunk goes once to each other host, to one of its ranks,
//                   from which that host's other ranks copy it;
//   reduce-scatter  a rank gets its chunk of every rank of other hosts, slice by
//                   slice, and combines all of them in rank order, so that the
//                   bits are those of one host;
//   all-reduce      small ones: everybody gets everything and combines it; else a
//                   reduce-scatter and an all-gather of parts.
//
// The first rank of each host compares what the hosts call before anything is sent.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_HOSTSCOMMUNICATOR_H
#define SPMD_LIB_RUNTIME_PROCESS_HOSTSCOMMUNICATOR_H

#include "HostLink.h"
#include "HostRanks.h"

#include <functional>

namespace spmd::runtime {

/// On which host each rank is, and those of one group of ranks that meet.
struct Hosts {
  std::vector<int64_t> hostOf;               ///< by rank
  std::vector<std::vector<int64_t>> ranksOf; ///< by host: those of the group
  int64_t self = 0;                          ///< this host

  bool isHere(int64_t rank) const { return hostOf[static_cast<size_t>(rank)] == self; }
  /// The rank of `host` that gets what `rank`, of another host, gives to all of it.
  int64_t receiverOf(int64_t rank, int64_t host) const {
    const std::vector<int64_t> &ranks = ranksOf[static_cast<size_t>(host)];
    return ranks[static_cast<size_t>(rank) % ranks.size()];
  }
};

/// Says, once in a job, that this process is the first to find something wrong.
using ClaimFirst = std::function<bool()>;

/// One communicator: an end for each rank here. `parts` are the ranks of this host and `hosts` where all are, of each
/// group; `space` is its own.
Expected<std::unique_ptr<CommunicatorGroup>> makeHostsGroup(const RanksHere &here, const RankGroups &groups,
                                                            std::vector<std::unique_ptr<HostRanks>> parts,
                                                            std::vector<Hosts> hosts, std::shared_ptr<HostLink> link,
                                                            int32_t space, ClaimFirst claimFirst);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_HOSTSCOMMUNICATOR_H
