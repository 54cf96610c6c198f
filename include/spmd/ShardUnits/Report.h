//===- Report.h - what shard units cost -------------------------*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_REPORT_H
#define SPMD_SHARDUNITS_REPORT_H

#include "spmd/ShardUnits/ShardUnits.h"

namespace spmd::units {

/// What one unit costs. Bytes count padding.
struct UnitCost {
  int64_t numParameters = 0, numel = 0, frozenNumel = 0;
  /// Elements that belong to no parameter.
  int64_t padding = 0;
  /// Bytes of the whole unit on a rank while it is gathered, in the dtype it travels in; and what a rank keeps.
  int64_t gatheredBytes = 0, keptBytes = 0;
};

UnitCost getCost(const ModuleTree &tree, const Unit &unit, const Mesh &mesh);

/// Units so small that latency decides, a root that holds most of the model.
std::vector<std::string> getCostWarnings(const ModuleTree &tree, const ShardUnits &units);

/// A table for people, with warnings and remarks.
std::string formatUnits(const ModuleTree &tree, const ShardUnits &units);

/// Everything, as one JSON object (docs/shard-units.md).
std::string toJson(const ModuleTree &tree, const ShardUnits &units);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_REPORT_H
