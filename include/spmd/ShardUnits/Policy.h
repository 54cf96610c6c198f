//===- Policy.h - which modules become shard units --------------*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_POLICY_H
#define SPMD_SHARDUNITS_POLICY_H

#include "spmd/ShardUnits/ModuleTree.h"
#include "spmd/ShardUnits/UnitOptions.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spmd::units {

/// A wrap policy. Each of PyTorch's own is one kind; `any` is PyTorch's _or_policy.
struct Policy {
  enum class Kind {
    annotations, ///< the model's annotations, or none
    automatic, ///< the model's annotations, or modules by their use [Note: units by use]
    none,      ///< nothing but the root
    always,    ///< every module
    byClass,   ///< modules of the classes `names`, and of their subclasses
    byName,    ///< modules whose whole path matches the regular expression `names[0]`
    bySize,    ///< modules that hold at least `size` elements which are in no unit yet
    modules,   ///< the modules with the paths `names`; together one unit when `isOneUnit`
    callable,  ///< `(module, recurse, nonwrapped_numel)`, asked through Decide
    custom,    ///< `(module) -> options or not`, asked once for every module in preorder, through Decide
    any,       ///< modules that one of `parts` chooses; the first that does gives the options
    rules,     ///< the first of `parts` that chooses a module decides, and may decide against it
  };

  Kind kind = Kind::none;
  std::vector<std::string> names;
  /// Names are whole qualified names.
  bool exact = false;
  int64_t size = 0;
  /// bySize: classes below which nothing is a unit, and classes that are no unit. Without them PyTorch's defaults.
  std::optional<std::vector<std::string>> forceLeaf, exclude;
  bool isOneUnit = false;
  /// Which callable Decide shall ask.
  int32_t callable = 0;
  std::vector<Policy> parts;
  /// As a part of `rules`: whether what it chooses becomes a unit, with which options.
  bool unit = true;
  UnitOptions options;
  /// What messages call it, and the place in a file that it is from.
  std::string text, location;
};

/// What a callable answers: 0 no, 1 yes, -1 it failed. `options` may be set to the JSON of UnitOptions.
using Decide =
    std::function<int32_t(int32_t callable, size_t module, bool recurse, int64_t nonwrapped, std::string &options)>;

/// Parses annotations | auto | none | always | class:A,B | size:N[,force-leaf=A+B][,exclude=A+B] | name:REGEX | or(P;P;...).
/// An error quotes the text and the position of what is wrong with it.
runtime::Expected<Policy> parsePolicy(const std::string &text);

/// Reads a policy from JSON: a string as above, or {"class": [...], "exact": true}, {"size": N, "force_leaf": [...],
/// "exclude": [...]}, {"callable": 0}, {"custom": 0}, {"modules": {path: options}}, {"or": [...]}.
Policy readPolicy(runtime::JsonValue json);

/// Reads the ordered rules of a plan file (docs/shard-units.md).
Policy readRules(runtime::JsonValue json);

/// The names nearest to `wanted`, best first: " (closest: A, B)"; empty when `known` is.
std::string suggestNames(const std::string &wanted, const std::vector<std::string> &known);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_POLICY_H
