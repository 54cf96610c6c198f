//===- MaximumClosure.cpp -------------------------------------------------===//
//
// Picard's reduction: what a closure gives up, positive nodes left out and
// negative ones taken, is the capacity of a cut between a source with an edge
// to every positive node and a sink with an edge from every negative one, if
// requirements cannot be cut. The minimum cut is found by Dinic's algorithm.
//
//===----------------------------------------------------------------------===//

#include "MaximumClosure.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {

constexpr int64_t kUnbounded = INT64_MAX / 4;

class FlowNetwork {
public:
  explicit FlowNetwork(size_t nodes) : edgesOf(nodes), levels(nodes), next(nodes) {}

  void addEdge(size_t from, size_t to, int64_t capacity) {
    edgesOf[from].push_back(edges.size());
    edges.push_back({to, capacity});
    edgesOf[to].push_back(edges.size());
    edges.push_back({from, 0});
  }

  /// Saturates the network, and returns which nodes the source still reaches.
  std::vector<bool> cut(size_t source, size_t sink) {
    while (findLevels(source, sink)) {
      std::fill(next.begin(), next.end(), 0);
      while (augment(source, sink)) {
      }
    }
    std::vector<bool> reached(levels.size());
    for (size_t node = 0; node < levels.size(); ++node)
      reached[node] = levels[node] >= 0;
    return reached;
  }

private:
  /// An edge; the one after or before it (`index ^ 1`) is its reverse.
  struct Edge {
    size_t to;
    int64_t capacity;
  };

  /// Distances from the source over edges with capacity left; -1: not reached.
  bool findLevels(size_t source, size_t sink) {
    std::fill(levels.begin(), levels.end(), -1);
    levels[source] = 0;
    queue.assign(1, source);
    for (size_t head = 0; head < queue.size(); ++head)
      for (size_t index : edgesOf[queue[head]])
        if (const Edge &edge = edges[index]; edge.capacity > 0 && levels[edge.to] < 0) {
          levels[edge.to] = levels[queue[head]] + 1;
          queue.push_back(edge.to);
        }
    return levels[sink] >= 0;
  }

  /// Sends flow along one shortest path; false if there is none left.
  bool augment(size_t source, size_t sink) {
    path.clear();
    for (size_t node = source; node != sink;) {
      if (next[node] < edgesOf[node].size()) {
        size_t index = edgesOf[node][next[node]];
        const Edge &edge = edges[index];
        if (edge.capacity > 0 && levels[edge.to] == levels[node] + 1) {
          path.push_back(index);
          node = edge.to;
        } else {
          ++next[node];
        }
        continue;
      }
      if (path.empty())
        return false;
      node = edges[path.back() ^ 1].to;
      path.pop_back();
      ++next[node];
    }
    int64_t flow = kUnbounded;
    for (size_t index : path)
      flow = std::min(flow, edges[index].capacity);
    for (size_t index : path) {
      edges[index].capacity -= flow;
      edges[index ^ 1].capacity += flow;
    }
    return true;
  }

  std::vector<Edge> edges;
  std::vector<std::vector<size_t>> edgesOf;
  std::vector<int64_t> levels;
  std::vector<size_t> next, queue, path;
};

} // namespace

std::vector<bool> ClosureProblem::solve() const {
  size_t source = weights.size(), sink = source + 1;
  FlowNetwork network(sink + 1);
  for (size_t node = 0; node < weights.size(); ++node) {
    if (weights[node] > 0)
      network.addEdge(source, node, weights[node]);
    else if (weights[node] < 0)
      network.addEdge(node, sink, -weights[node]);
  }
  for (const Requirement &requirement : requirements)
    network.addEdge(requirement.node, requirement.required, kUnbounded);
  std::vector<bool> closure = network.cut(source, sink);
  closure.resize(weights.size());
  return closure;
}
