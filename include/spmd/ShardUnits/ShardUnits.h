//===- ShardUnits.h - from a policy to shard units --------------*- C++ -*-===//
//
// [Note: shard units]
// A walk over the module tree, children first in registration order, asks a policy for every module twice, as
// PyTorch's FSDP does: whether to go on below it, and whether it is a unit of its own. Every module is visited once,
// under the first module that has it. A parameter then belongs to the innermost unit that contains all its owners.
//
// The numbers that a policy sees count every parameter once: what is in a module is the set of parameters in it, and
// what is not wrapped yet is this set without the parameters that are in a chosen module below.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_SHARDUNITS_SHARDUNITS_H
#define SPMD_SHARDUNITS_SHARDUNITS_H

#include "spmd/ShardUnits/Annotation.h"
#include "spmd/ShardUnits/FlatLayout.h"
#include "spmd/ShardUnits/Placement.h"
#include "spmd/ShardUnits/Policy.h"

namespace spmd::units {

/// The policy `annotations`, which holds where nobody says another one.
inline Policy annotationsPolicy() {
  Policy policy;
  policy.kind = Policy::Kind::annotations;
  policy.text = "annotations";
  return policy;
}

/// What decides the units of a model.
struct Request {
  Policy policy = annotationsPolicy();
  /// Options of units that say nothing else.
  UnitOptions defaults;
  std::vector<std::string> ignoredModules, ignoredParameters;
  /// Classes whose modules are units without mixed precision wherever others have it.
  std::vector<std::string> exemptClasses = {"torch.nn.modules.batchnorm._BatchNorm"};
  std::vector<Annotation> annotations;
  Mesh mesh;
  /// Nobody said how the ranks are arranged: annotations may.
  bool isMeshOpen = false;
  /// Of a plan file: parameters on the tensor axis of the mesh. What is a unit does not depend on it.
  std::vector<Placement> placements;
  /// A tied parameter with owners in several units is an error.
  bool strictTied = false;
  /// Names in the policy that match nothing, and a policy that chooses nothing, are errors (else warnings).
  bool strictNames = true;
};

/// Parameters in one flat buffer: of one dtype, all of them updated by the step or none.
struct UnitBuffer {
  runtime::DType dtype = runtime::DType::F32;
  bool updated = true;
  /// In the order of the buffer, with their offsets.
  std::vector<size_t> parameters;
  std::vector<int64_t> offsets;
  int64_t padded = 0;
};

struct Unit {
  /// The modules it is made of; the first gives its name.
  std::vector<size_t> modules;
  /// What is in effect, and what the policy or annotation said of this unit.
  UnitOptions options, givenOptions;
  std::vector<UnitBuffer> buffers;
  /// Not of the model's units: parameters that were to be ignored, kept whole on every rank.
  bool isIgnored = false;
  /// Of mode default, and nothing said whether it reshards after forward: it does, unless the compiler has memory left.
  bool isReshardOpen = false;
};

struct ShardUnits {
  /// In post-order, the root last.
  std::vector<Unit> units;
  /// Ignored parameters, one buffer per dtype; no buffer when there are none.
  Unit ignored;
  /// What a user should know: mixed units, names that match nothing.
  std::vector<std::string> warnings;
  /// What was decided where there was a choice: tied parameters.
  std::vector<std::string> remarks;
  /// That of the request, or of the annotations.
  Mesh mesh;
  /// Ranks of a group over which units keep gathered parameters between forward and backward; 0: none does.
  int64_t reshardGroup = 0;
};

/// Assigns every parameter to exactly one unit, or to the ignored ones.
runtime::Expected<ShardUnits> assignShardUnits(const ModuleTree &tree, const Request &request,
                                               const Decide &decide = nullptr);

/// Modules that make one unit, and what was said of it.
struct Choice {
  std::vector<size_t> modules;
  UnitOptions options;
  /// Parameters inside that stay out of the unit.
  std::vector<size_t> ignored;
};

struct Choices {
  std::vector<Choice> choices;
  /// By module, the number of its choice, -1 for none. The root always has one.
  std::vector<int64_t> byModule;
  /// True when annotations chose.
  bool isAnnotated = false;

  /// The choice of the innermost chosen module that every way to `module` goes through.
  size_t getInnermost(const ModuleTree &tree, size_t module) const;
};

/// The modules that a request chooses; the first half of assignShardUnits. The ignored modules and parameters are given
/// by number.
runtime::Expected<Choices> chooseModules(const ModuleTree &tree, const Request &request,
                                         const std::vector<bool> &ignoredModules,
                                         const std::vector<bool> &ignoredParameters, const Decide &decide,
                                         std::vector<std::string> &warnings);

/// Adds what a plan file says (docs/shard-units.md) to a request.
void readPlan(runtime::JsonValue root, Request &request);
runtime::Status readPlanFile(const std::string &path, Request &request);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_SHARDUNITS_H
