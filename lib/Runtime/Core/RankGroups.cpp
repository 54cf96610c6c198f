//===- RankGroups.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/RankGroups.h"

#include <algorithm>
#include <map>

using namespace spmd::runtime;

void RankGroups::add(int64_t rank, size_t group) {
  if (group == members.size())
    members.emplace_back();
  places.emplace_back(group, static_cast<int64_t>(members[group].size()));
  members[group].push_back(rank);
}

RankGroups RankGroups::all(int64_t ranks) {
  RankGroups groups;
  for (int64_t rank = 0; rank < ranks; ++rank)
    groups.add(rank, 0);
  return groups;
}

RankGroups RankGroups::along(const std::vector<MeshAxis> &mesh, const std::vector<std::string> &axes) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    ranks *= axis.size;
  if (axes.empty())
    return all(ranks);
  // Rank numbers are row-major in the axes, and so are those within a group.
  RankGroups groups;
  std::map<int64_t, size_t> known; ///< by the number that the coordinates off the axes make
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t rest = rank, outside = 0, weight = 1;
    for (size_t i = mesh.size(); i-- > 0; rest /= mesh[i].size) {
      if (std::find(axes.begin(), axes.end(), mesh[i].name) != axes.end())
        continue;
      outside += rest % mesh[i].size * weight;
      weight *= mesh[i].size;
    }
    groups.add(rank, known.try_emplace(outside, known.size()).first->second);
  }
  return groups;
}
