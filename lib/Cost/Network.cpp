//===- Network.cpp --------------------------------------------------------===//

#include "spmd/Cost/Network.h"

#include <algorithm>

using namespace spmd;
using namespace spmd::cost;

GroupSpan spmd::cost::spanOf(const runtime::RankGroups &groups, int64_t ranksPerNode) {
  GroupSpan span{groups.size(), 1};
  for (size_t group = 0; group < groups.count(); ++group) {
    // Members ascend, so those of a node follow each other.
    int64_t nodes = 0, last = -1;
    for (int64_t rank : groups.membersOf(group)) {
      nodes += rank / ranksPerNode != last ? 1 : 0;
      last = rank / ranksPerNode;
    }
    span.nodes = std::max(span.nodes, nodes);
  }
  return span;
}

static double between(double a, double b, double part) { return a + (b - a) * part; }

static Path between(const Path &a, const Path &b, double part) {
  return {between(a.latency, b.latency, part), between(a.bandwidth, b.bandwidth, part)};
}

runtime::Expected<Path> Network::findPath(const GroupSpan &span) const {
  if (span.nodes <= 1)
    return node;
  auto above = std::lower_bound(fabric.begin(), fabric.end(), span.nodes,
                                [](const FabricRow &row, int64_t nodes) { return row.nodes < nodes; });
  if (above == fabric.end())
    return runtime::Status::badInput("network '" + name + "': expected groups of at most " +
                                     std::to_string(fabric.empty() ? 1 : fabric.back().nodes) + " nodes of " +
                                     std::to_string(ranksPerNode) + " ranks, found a communicator of " +
                                     std::to_string(span.ranks) + " ranks on " + std::to_string(span.nodes) +
                                     " nodes\n  hint: choose another --network, or add a row to its fabric");
  auto below = above == fabric.begin() || above->nodes == span.nodes ? above : above - 1;
  double part = below == above
                    ? 0
                    : static_cast<double>(span.nodes - below->nodes) / static_cast<double>(above->nodes - below->nodes);
  Path whole = between(below->whole, above->whole, part), single = between(below->single, above->single, part);
  if (ranksPerNode == 1)
    return whole;
  return between(single, whole, (span.ranksPerNode() - 1) / static_cast<double>(ranksPerNode - 1));
}
