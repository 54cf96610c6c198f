//===- AssignShardUnits.cpp - spmd-assign-shard-units ---------------------===//

#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Units/ModuleTree.h"
#include "spmd/Transforms/Units/Passes.h"
#include "spmd/Transforms/Units/WrapPolicy.h"
#include "llvm/ADT/MapVector.h"

namespace spmd {
#define GEN_PASS_DEF_ASSIGNSHARDUNITS
#include "spmd/Transforms/Units/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

/// One parameter argument of @step.
struct Parameter {
  StringRef name;
  RankedTensorType type;
  bool trainable;
  /// The step gives it a new value.
  bool updated;
  int64_t group = -1;
  /// Nearest common ancestor of the modules that own it.
  int64_t module = 0;
};

/// Parameters in one unit agree on all of these; units are made in this order.
struct UnitKey {
  int64_t module;
  bool updated;
  Type dtype;
  bool operator==(const UnitKey &o) const { return module == o.module && updated == o.updated && dtype == o.dtype; }
};

struct AssignShardUnitsPass : spmd::impl::AssignShardUnitsBase<AssignShardUnitsPass> {
  using AssignShardUnitsBase::AssignShardUnitsBase;
  void runOnOperation() override;

private:
  FailureOr<UnitMode> parseOptions();
  SmallVector<Parameter> readParameters(func::FuncOp step, const ModuleTree &tree);
};

} // namespace

/// Group of each parameter by name, from `spmd.param_groups`.
static llvm::StringMap<int64_t> readGroups(ModuleOp module) {
  llvm::StringMap<int64_t> groups;
  auto attr = module->getAttrOfType<ArrayAttr>("spmd.param_groups");
  if (!attr)
    return groups;
  for (auto [number, group] : llvm::enumerate(attr))
    if (auto dict = dyn_cast<DictionaryAttr>(group))
      if (auto names = dict.getAs<ArrayAttr>("parameters"))
        for (auto name : names.getAsRange<StringAttr>())
          groups[name.getValue()] = number;
  return groups;
}

FailureOr<UnitMode> AssignShardUnitsPass::parseOptions() {
  ModuleOp module = getOperation();
  if (ranks < 1)
    return module.emitError() << "ranks is " << static_cast<int64_t>(ranks) << ", expected at least 1";
  std::optional<UnitMode> parsed = symbolizeUnitMode(mode);
  if (!parsed)
    return module.emitError() << "mode '" << mode << "' is not one of: fully_shard, replicate";
  if (!module.getOps<ShardUnitOp>().empty() || !module.getOps<MeshOp>().empty())
    return module.emitError("already has a mesh or shard units");
  return *parsed;
}

SmallVector<Parameter> AssignShardUnitsPass::readParameters(func::FuncOp step, const ModuleTree &tree) {
  llvm::StringMap<int64_t> groups = readGroups(getOperation());
  auto tied = getOperation()->getAttrOfType<DictionaryAttr>("spmd.tied");
  SmallVector<Parameter> parameters;
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i) {
    auto role = getArgRole<ParamAttr>(step, i);
    if (!role)
      continue;
    Parameter parameter{role.getName(), cast<RankedTensorType>(step.getArgument(i).getType()), role.getTrainable(),
                        findUpdate(step, i).has_value()};
    if (auto group = groups.find(role.getName()); group != groups.end())
      parameter.group = group->second;
    SmallVector<StringRef> names{role.getName()};
    if (auto aliases = tied ? tied.getAs<ArrayAttr>(role.getName()) : ArrayAttr())
      for (auto alias : aliases.getAsRange<StringAttr>())
        names.push_back(alias.getValue());
    parameter.module = tree.getCommonAncestor(tree.getOwners(names));
    parameters.push_back(parameter);
  }
  return parameters;
}

void AssignShardUnitsPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<UnitMode> unitMode = parseOptions();
  FailureOr<WrapPolicy> wrapPolicy = WrapPolicy::parse(policy, module.getLoc());
  func::FuncOp step = getStep(module);
  if (failed(unitMode) || failed(wrapPolicy) || !step)
    return signalPassFailure();
  FailureOr<ModuleTree> tree = ModuleTree::read(module);
  if (failed(tree))
    return signalPassFailure();

  SmallVector<Parameter> parameters = readParameters(step, *tree);
  SmallVector<int64_t> elements(tree->size(), 0);
  for (const Parameter &parameter : parameters)
    elements[parameter.module] += parameter.type.getNumElements();
  FailureOr<SmallVector<bool>> wrapped = wrapPolicy->wrap(*tree, elements, module.getLoc());
  if (failed(wrapped))
    return signalPassFailure();

  // In the order of the tree; within a module as the parameters come.
  SmallVector<std::pair<UnitKey, SmallVector<FlatParameter>>> units;
  for (int64_t wrap = 0; wrap < tree->size(); ++wrap) {
    size_t first = units.size();
    for (const Parameter &parameter : parameters) {
      int64_t home = parameter.module;
      while (!(*wrapped)[home])
        home = std::max<int64_t>(tree->getParent(home), 0);
      if (home != wrap)
        continue;
      UnitKey key{wrap, parameter.updated, parameter.type.getElementType()};
      auto unit = std::find_if(units.begin() + first, units.end(), [&](auto &entry) { return entry.first == key; });
      if (unit == units.end())
        unit = units.insert(units.end(), {key, {}});
      unit->second.push_back({parameter.name, parameter.type.getShape(), parameter.group, parameter.trainable});
    }
  }

  OpBuilder builder(step);
  Location loc = module.getLoc();
  auto axes = builder.getStrArrayAttr({"data"});
  MeshOp::create(builder, loc, "mesh", axes, builder.getDenseI64ArrayAttr({ranks}));
  for (auto [number, unit] : llvm::enumerate(units)) {
    const UnitKey &key = unit.first;
    ShardUnitOp::create(builder, loc, "unit" + std::to_string(number),
                        builder.getStrArrayAttr({tree->get(key.module).getPath()}), "mesh", axes, *unitMode,
                        static_cast<bool>(reshardAfterForward), buildFlatLayout(key.dtype, unit.second, ranks));
  }
}
