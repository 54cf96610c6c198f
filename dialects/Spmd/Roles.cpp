//===- Roles.cpp - arguments and results by role --------------------------===//

#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace spmd {

bool isArgRole(Attribute attr) {
  return isa_and_nonnull<ParamAttr, BufferAttr, ConstantAttr, StateAttr, HyperAttr, RngAttr, BatchAttr, ShardAttr,
                         TableAttr>(attr);
}

func::FuncOp getStep(ModuleOp module) {
  auto func = module.lookupSymbol<func::FuncOp>("step");
  if (func && !func.isExternal())
    return func;
  module.emitError("module has no function @step with a body");
  return {};
}

Attribute getArgRole(func::FuncOp func, unsigned arg) { return func.getArgAttr(arg, kArgAttr); }

Attribute getResultRole(func::FuncOp func, unsigned result) { return func.getResultAttr(result, kResultAttr); }

/// The first of an attribute dictionary for each argument or result whose entry `name` is accepted. Names are compared as
/// pointers: a step has thousands of arguments, and passes look for each.
static std::optional<unsigned> findRole(ArrayAttr dictionaries, StringAttr name,
                                        llvm::function_ref<bool(Attribute)> isAccepted) {
  for (unsigned i = 0, e = dictionaries ? dictionaries.size() : 0; i < e; ++i)
    if (Attribute role = cast<DictionaryAttr>(dictionaries[i]).get(name); role && isAccepted(role))
      return i;
  return std::nullopt;
}

static std::optional<unsigned> findArg(func::FuncOp func, llvm::function_ref<bool(Attribute)> isAccepted) {
  return findRole(func.getArgAttrsAttr(), StringAttr::get(func.getContext(), kArgAttr), isAccepted);
}

std::optional<unsigned> findArg(func::FuncOp func, Attribute role) {
  return findArg(func, [&](Attribute other) { return other == role; });
}

std::optional<unsigned> findParam(func::FuncOp func, StringRef name) {
  return findArg(func, [&](Attribute role) {
    auto param = dyn_cast<ParamAttr>(role);
    return param && param.getName() == name;
  });
}

std::optional<unsigned> findState(func::FuncOp func, StringRef state, StringRef of) {
  return findArg(func, [&](Attribute role) {
    auto found = dyn_cast<StateAttr>(role);
    return found && found.getState() == state && found.getOf() == of;
  });
}

std::optional<unsigned> findUpdate(func::FuncOp func, unsigned arg) {
  Attribute role = getArgRole(func, arg);
  return findRole(func.getResAttrsAttr(), StringAttr::get(func.getContext(), kResultAttr), [&](Attribute result) {
    auto update = dyn_cast<UpdateAttr>(result);
    return update && update.getArg() == role;
  });
}

ShardingAttr getVaryingBatchLayout(BatchAttr batch, RankedTensorType type, int64_t ranks) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(type.getEncoding());
  if (!sharding || sharding.getStates().size() != 1 || !sharding.getStates().front().isVarying())
    return nullptr;
  SmallVector<int64_t> global(type.getShape());
  int64_t rows = global[batch.getDim()];
  global[batch.getDim()] *= ranks;
  return ShardingAttr::get(type.getContext(), global, AxisState::shard(batch.getDim(), 1, rows));
}

std::optional<int64_t> getSegment(Operation *op) {
  if (auto segment = op->getAttrOfType<IntegerAttr>(kSegmentAttr))
    return segment.getInt();
  return std::nullopt;
}

std::optional<StepPhase> getPhase(ModuleOp module, int64_t segment) {
  auto phases = module->getAttrOfType<ArrayAttr>(kPhasesAttr);
  if (!phases || segment < 0 || segment >= static_cast<int64_t>(phases.size()))
    return std::nullopt;
  auto phase = dyn_cast<StringAttr>(phases[segment]);
  return llvm::StringSwitch<std::optional<StepPhase>>(phase ? phase.getValue() : StringRef())
      .Case("forward", StepPhase::forward)
      .Case("backward", StepPhase::backward)
      .Case("optimizer", StepPhase::optimizer)
      .Default(std::nullopt);
}

std::optional<StepPhase> getPhase(Operation *op) {
  std::optional<int64_t> segment = getSegment(op);
  return segment ? getPhase(op->getParentOfType<ModuleOp>(), *segment) : std::nullopt;
}

} // namespace spmd
