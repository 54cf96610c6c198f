//===- UnitOptions.h - what can be chosen per shard unit --------*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_UNITOPTIONS_H
#define SPMD_SHARDUNITS_UNITOPTIONS_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/ShardUnits/Mesh.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace spmd::units {

/// What of a unit is cut along the axis shard of the mesh: all of it, and hybrid says so of a mesh of two axes;
/// shard_grad_op keeps gathered parameters until backward; shard_optimizer has them whole at any time; replicate cuts
/// nothing. byBudget, "default", is fullyShard or shardGradOp, as a budget of memory allows.
enum class Mode { fullyShard, shardGradOp, shardOptimizer, hybrid, replicate, byBudget };

/// Their names, for errors.
constexpr char kModes[] = "fully_shard, shard_grad_op, shard_optimizer, hybrid, replicate, default";

const char *nameOf(Mode mode);
std::optional<Mode> parseMode(const std::string &name);

/// Dtypes of mixed precision, as in PyTorch's MixedPrecisionPolicy; absent ones are the parameter's own. `grad` is
/// that in which reduced gradients of wider parameters are kept, `master` that of the optimizer's copy of narrower ones.
struct Precision {
  std::optional<runtime::DType> param, reduce, grad, buffer, output, master;

  /// The dtypes with their names, in order.
  std::array<std::pair<const char *, std::optional<runtime::DType>>, 6> entries() const {
    return {{{"param", param},
             {"reduce", reduce},
             {"grad", grad},
             {"buffer", buffer},
             {"output", output},
             {"master", master}}};
  }
  /// These types, and for absent ones those of `other`.
  Precision orElse(const Precision &other) const;
  bool empty() const { return !param && !reduce && !grad && !buffer && !output && !master; }
  bool operator==(const Precision &o) const {
    return param == o.param && reduce == o.reduce && grad == o.grad && buffer == o.buffer && output == o.output &&
           master == o.master;
  }
};

/// Options of a unit; what is absent is taken from the options of the root.
struct UnitOptions {
  std::optional<Mode> mode;
  /// 0: gathered parameters stay until backward; 1: they are freed and gathered again. Any other number is the size of
  /// the group of ranks over which they are kept in between.
  static constexpr int64_t kKeep = 0, kReshard = 1;
  std::optional<int64_t> reshardAfterForward;
  /// Present and empty: no mixed precision, whatever the root has.
  std::optional<Precision> precision;
  /// Units gathered ahead of this one's use: 0 or 1.
  std::optional<int64_t> prefetch;
  /// The mesh that an annotation names.
  std::optional<Mesh> mesh;

  /// These options, and for absent ones those of `other`.
  UnitOptions orElse(const UnitOptions &other) const;
};

/// Reads "true", "false" or a number of ranks, as reshardAfterForward has it; an error says what is allowed.
runtime::Expected<int64_t> parseReshard(const std::string &text);

/// The options with what their mode says of the others; an error where these say otherwise. `unit` is what errors call
/// the unit, empty for options of all.
runtime::Status completeMode(UnitOptions &options, const std::string &unit);

/// Reads {"mode": "replicate", "reshard_after_forward": false, "precision": {"param": "bf16"}, "prefetch": 0,
/// "mesh": [4, 8]} (or "ranks": 8, a mesh of one axis). Unknown names are errors that list the allowed ones.
UnitOptions readOptions(runtime::JsonValue json);

/// Reads {"param": "bf16", "reduce": "f32"}; without "reduce" gradients are reduced in the type of "param".
Precision readPrecision(runtime::JsonValue json);

/// Reads "param=bf16,reduce=f32"; empty text is a precision without types.
runtime::Expected<Precision> parsePrecision(const std::string &text);

/// Checks options that depend on the mesh, and makes them plain: a group of all ranks that share the unit is kReshard,
/// a group of one is kKeep, as in PyTorch. `unit` is what errors call the unit.
runtime::Status resolveOptions(UnitOptions &options, const Mesh &mesh, const std::string &unit);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_UNITOPTIONS_H
