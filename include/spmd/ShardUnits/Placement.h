//===- Placement.h - parameters on the tensor axis --------------*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_PLACEMENT_H
#define SPMD_SHARDUNITS_PLACEMENT_H

#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spmd::units {

/// Where parameters are on the tensor axis of the mesh: whole on every rank, as those are that nothing is said of, or
/// cut in one dimension. The words are those of torch.distributed.tensor: Replicate(), Shard(dim), and
/// _StridedShard(dim, split_factor=parts), which cuts each of `parts` equal parts of the dimension.
struct Placement {
  std::string pattern;        ///< of names of parameters: * stands for any letters, ? for one
  std::optional<int64_t> dim; ///< that is cut; below 0 from the end; nothing: whole
  int64_t parts = 1;

  bool matches(const std::string &name) const;
  /// "shard(0)", "shard(0,3)" or "replicate".
  std::string describe() const;
};

/// What a placement looks like where it is written, for errors.
constexpr char kPlacementForm[] = "replicate, shard(DIM) or shard(DIM,PARTS)";

/// Reads PATTERN=PLACEMENT,PATTERN=PLACEMENT. The first pattern that matches a name decides.
runtime::Expected<std::vector<Placement>> parsePlacements(const std::string &text);

/// Reads [{"parameter": PATTERN, "placement": PLACEMENT}]: as rules, the first that matches decides.
std::vector<Placement> readPlacements(runtime::JsonValue json);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_PLACEMENT_H
