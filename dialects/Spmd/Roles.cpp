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

std::optional<unsigned> findArg(func::FuncOp func, Attribute role) {
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    if (getArgRole(func, i) == role)
      return i;
  return std::nullopt;
}

std::optional<unsigned> findParam(func::FuncOp func, StringRef name) {
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    if (auto role = getArgRole<ParamAttr>(func, i); role && role.getName() == name)
      return i;
  return std::nullopt;
}

std::optional<unsigned> findState(func::FuncOp func, StringRef state, StringRef of) {
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    if (auto role = getArgRole<StateAttr>(func, i); role && role.getState() == state && role.getOf() == of)
      return i;
  return std::nullopt;
}

std::optional<unsigned> findUpdate(func::FuncOp func, unsigned arg) {
  Attribute role = getArgRole(func, arg);
  for (unsigned i = 0, e = func.getNumResults(); i < e; ++i)
    if (auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(func, i)); update && update.getArg() == role)
      return i;
  return std::nullopt;
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
