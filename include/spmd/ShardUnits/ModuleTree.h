//===- ModuleTree.h - modules and parameters of a model ---------*- C++ -*-===//
//
// What wrap policies read, as plain data: no MLIR, no LLVM, so that the
// compiler, spmd-report and Python share one implementation.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_SHARDUNITS_MODULETREE_H
#define SPMD_SHARDUNITS_MODULETREE_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/ShardUnits/FirstUses.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace spmd::units {

/// One module as step.json describes it. Children are in registration order, and a child that several modules have
/// is named alike by all of them.
struct ModuleRecord {
  std::string path, className;
  /// Fully qualified, nearest first.
  std::vector<std::string> bases;
  /// Full names of its own parameters, as this module names them.
  std::vector<std::string> parameters;
  std::vector<std::string> children;
};

/// One parameter; aliases are its further names when it is tied.
struct ParameterRecord {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<int64_t> shape;
  runtime::DType dtype = runtime::DType::F32;
  bool trainable = true;
  /// The step gives it a new value. Parameters that are updated and ones that are not never share a flat buffer.
  bool updated = true;
  /// Optimizer param group, -1 for none.
  int64_t group = -1;
  /// Where the step first uses it (FirstUses); kNone also when no step is known.
  int64_t firstUse = FirstUses::kNone;
};

/// Modules and parameters are numbered as they were given; module 0 is the root.
class ModuleTree {
public:
  /// An error when there is no module, a name comes twice, a child is not there, or a module is in no other one.
  static runtime::Expected<ModuleTree> create(std::vector<ModuleRecord> modules,
                                              std::vector<ParameterRecord> parameters);
  /// From the members `module_tree` and `parameters` of step.json. Where they are there, `optimizer` says the groups,
  /// and `inputs` and `nodes` which parameters the step updates, else it is the trainable ones, and where it first uses
  /// each.
  static runtime::Expected<ModuleTree> read(runtime::JsonValue root);

  size_t numModules() const { return modules.size(); }
  size_t numParameters() const { return parameters.size(); }
  const ModuleRecord &getModule(size_t module) const { return modules[module]; }
  const ParameterRecord &getParameter(size_t parameter) const { return parameters[parameter]; }
  int64_t getNumel(size_t parameter) const { return numels[parameter]; }

  /// Distinct, in registration order.
  const std::vector<size_t> &getChildren(size_t module) const { return children[module]; }
  /// The module's own parameters, distinct, in registration order.
  const std::vector<size_t> &getOwnParameters(size_t module) const { return own[module]; }
  /// The modules that list the parameter; more than one when it is tied.
  const std::vector<size_t> &getOwners(size_t parameter) const { return owners[parameter]; }

  /// The nearest module that every way from the root to `module` goes through: its parent, or, for a module with
  /// several parents, their nearest common ancestor. The root's is the root.
  size_t getAncestor(size_t module) const { return ancestors[module]; }
  /// The nearest module that contains all of `of`; the root for none.
  size_t getCommonAncestor(const std::vector<size_t> &of) const;

  /// The module and everything below it, each once, in preorder of registration.
  std::vector<size_t> getSubtree(size_t module) const;
  /// All modules, each once, children first in registration order; the root comes last.
  const std::vector<size_t> &getPostOrder() const { return postOrder; }

  /// A module by path, a parameter by name or alias.
  const size_t *findModule(const std::string &path) const;
  const size_t *findParameter(const std::string &name) const;

  /// The module's class, or a base of it, is called `name`: a name of several components matches from the end
  /// (`Block` and `train.Block` match `gpt.train.Block`); with `exact` only the whole name does.
  bool isInstance(size_t module, const std::string &name, bool exact = false) const;

private:
  void connect();
  void findAncestors();

  std::vector<ModuleRecord> modules;
  std::vector<ParameterRecord> parameters;
  std::vector<int64_t> numels;
  std::vector<std::vector<size_t>> children, own, owners;
  std::vector<size_t> ancestors, postOrder, postNumber;
  std::unordered_map<std::string, size_t> moduleNumbers, parameterNumbers;
};

/// A path for people: "(root)" for the root.
std::string formatPath(const std::string &path);

/// The parts of a text between `separator`s; one empty part for an empty text.
std::vector<std::string> splitText(const std::string &text, char separator);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_MODULETREE_H
