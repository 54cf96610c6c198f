//===- FittingOptions.cpp - What brings a plan under its budget -----------===//

#include "FittingOptions.h"
#include "PlanBytes.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/ShardUnits/Mesh.h"

using namespace mlir;
using namespace spmd;
using runtime::formatCount;

/// Ranks are doubled at most this often.
static constexpr int kMostDoublings = 4;

FittingOptions spmd::findFittingOptions(ModuleOp imported, const PipelineOptions &options, int64_t budget) {
  FittingOptions found;
  auto attempt = [&](const std::string &text, const PipelineOptions &changed) -> std::optional<int64_t> {
    std::optional<int64_t> bytes = planBytes(imported, changed, Phase::import);
    if (!bytes)
      return bytes;
    bool fits = *bytes <= budget;
    found.rows.push_back({text, formatCount(*bytes), fits ? "fits" : formatCount(*bytes - budget) + " too many"});
    if (fits)
      found.fitting.push_back(text);
    return bytes;
  };
  PipelineOptions changed = options;
  if (options.mode != "fully_shard" && options.mode != "hybrid" && options.mode != "default") {
    changed.mode = "fully_shard";
    attempt("--mode=fully_shard", changed);
  }
  // What is annotated has units that a user chose.
  if ((options.policy == "none" || options.policy == "annotations") && options.policyFile.empty() &&
      !imported->hasAttr("spmd.annotations")) {
    changed.policy = "auto";
    attempt("--policy=auto", changed);
  }
  if (options.reshardAfterForward == "false") {
    changed = options;
    changed.reshardAfterForward = "true";
    attempt("--reshard-after-forward=true", changed);
  }
  if (options.prefetch > 0) {
    changed = options;
    changed.prefetch = 0;
    attempt("--prefetch=0", changed);
  }
  std::optional<int64_t> before;
  changed = options;
  for (int i = 0; i < kMostDoublings && !found.anyFits(); ++i) {
    // More ranks in each row of a mesh: only along a row are units cut.
    units::Mesh mesh = *units::chooseMesh(changed.ranks, changed.mesh);
    mesh.shard *= 2;
    changed.ranks = mesh.ranks();
    if (!changed.mesh.empty())
      changed.mesh = mesh.replicate > 1 || mesh.tensor > 1 ? mesh.describe() : "shard:" + std::to_string(mesh.shard);
    std::optional<int64_t> bytes = attempt(
        changed.mesh.empty() ? "--ranks=" + std::to_string(changed.ranks) : "--mesh=" + changed.mesh, changed);
    if (!bytes || (before && *bytes >= *before))
      break;
    before = bytes;
  }
  return found;
}
