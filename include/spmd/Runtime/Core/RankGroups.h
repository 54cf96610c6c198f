//===- RankGroups.h - The ranks that meet in a communicator -------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_RANKGROUPS_H
#define SPMD_RUNTIME_CORE_RANKGROUPS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spmd::runtime {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  /// Along it ranks have the same rows of the batch, and parts of parameters; the last axis, if any.
  bool isTensor = false;
};

/// All ranks in one group, or those along some axes of a mesh in one for each place off these axes. Every rank is in
/// exactly one group, and all groups have the same size.
class RankGroups {
public:
  static RankGroups all(int64_t ranks);
  /// `axes` are of the mesh, in its order; none: all ranks.
  static RankGroups along(const std::vector<MeshAxis> &mesh, const std::vector<std::string> &axes);

  /// Ranks of a group.
  int64_t size() const { return static_cast<int64_t>(members.front().size()); }
  size_t count() const { return members.size(); }
  bool areAll() const { return members.size() == 1; }

  /// The ranks of a group, in order.
  const std::vector<int64_t> &membersOf(size_t group) const { return members[group]; }
  size_t groupOf(int64_t rank) const { return places[static_cast<size_t>(rank)].first; }
  /// Where the rank stands in its group: the place of its chunk.
  int64_t positionOf(int64_t rank) const { return places[static_cast<size_t>(rank)].second; }

private:
  void add(int64_t rank, size_t group);

  std::vector<std::vector<int64_t>> members;
  std::vector<std::pair<size_t, int64_t>> places; ///< by rank
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_RANKGROUPS_H
