//===- MaximumClosure.h - The best set that is closed under a relation -----===//

#ifndef SPMD_LIB_RUNTIME_CORE_MAXIMUMCLOSURE_H
#define SPMD_LIB_RUNTIME_CORE_MAXIMUMCLOSURE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spmd::runtime {

/// A directed graph with weights on its nodes, positive and negative. A closure
/// is a set of nodes that holds, with a node, all that the node requires.
class ClosureProblem {
public:
  size_t addNode() {
    weights.push_back(0);
    return weights.size() - 1;
  }
  void addWeight(size_t node, int64_t weight) { weights[node] += weight; }
  void addRequirement(size_t node, size_t required) { requirements.push_back({node, required}); }

  /// The closure of the largest weight, as a flag per node; of several the
  /// smallest, which is in all of them.
  std::vector<bool> solve() const;

private:
  struct Requirement {
    size_t node, required;
  };
  std::vector<int64_t> weights;
  std::vector<Requirement> requirements;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_MAXIMUMCLOSURE_H
