//===- Network.h - How fast ranks exchange bytes ------------------*- C++ -*-===//
//
// A network is what a rank has to reach the others: a link inside its node, and a link to the fabric between nodes. The
// price of a collective depends on how many nodes its group spans, and on how many ranks of each node are in the group.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_COST_NETWORK_H
#define SPMD_COST_NETWORK_H

#include "spmd/Runtime/Core/RankGroups.h"
#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::cost {

/// Where the ranks of a group lie.
struct GroupSpan {
  int64_t ranks = 1;
  int64_t nodes = 1;

  double ranksPerNode() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
};

/// Ranks [i * ranksPerNode, (i + 1) * ranksPerNode) are node i. Of groups that span different numbers of nodes, the
/// result is the span of one with the most: it is the slowest, and a collective of one group waits for no other group.
GroupSpan spanOf(const runtime::RankGroups &groups, int64_t ranksPerNode);

/// What a group has: seconds before the first byte arrives, and bytes per second of each rank.
struct Path {
  double latency = 0;
  double bandwidth = 0;
};

/// Groups that span `nodes` nodes.
struct FabricRow {
  int64_t nodes = 2;
  Path whole;  ///< all ranks of each node are in the group
  Path single; ///< one rank of each node is in the group
};

struct Network {
  std::string name;
  int64_t ranksPerNode = 1;
  Path node;                     ///< groups inside a node
  std::vector<FabricRow> fabric; ///< ascending in `nodes`; none: the network is one node

  /// The path of a group. Between two rows latency and bandwidth are linear in the number of nodes, and between
  /// `single` and `whole` linear in the number of ranks of a node. Fails for more nodes than the last row has.
  runtime::Expected<Path> findPath(const GroupSpan &span) const;
};

} // namespace spmd::cost

#endif // SPMD_COST_NETWORK_H
