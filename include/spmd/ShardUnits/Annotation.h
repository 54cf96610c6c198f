//===- Annotation.h - what a model's code says of its units -----*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_ANNOTATION_H
#define SPMD_SHARDUNITS_ANNOTATION_H

#include "spmd/ShardUnits/UnitOptions.h"

#include <string>
#include <vector>

namespace spmd::units {

/// fully_shard and wrap of one unit: modules by path, options, and the parameters that stay out of it.
struct Annotation {
  std::vector<std::string> modules;
  UnitOptions options;
  std::vector<std::string> ignored;
  /// Nobody said it: the step reaches the modules without an argument, and each is a unit beside those that annotations
  /// or a policy choose.
  bool reached = false;
};

/// Reads [{"modules": [...], "options": {...}, "ignored": [...]}].
std::vector<Annotation> readAnnotations(runtime::JsonValue json);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_ANNOTATION_H
