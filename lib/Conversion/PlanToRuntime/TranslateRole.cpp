//===- TranslateRole.cpp - Roles as entries of a manifest -----------------===//

#include "TranslateRole.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;

static std::optional<double> toDouble(FloatAttr value) {
  return value ? std::optional(value.getValueAsDouble()) : std::nullopt;
}

FailureOr<RoleEntry> spmd::translateRole(Operation *op, Attribute role, RankedTensorType type) {
  std::optional<runtime::DType> known = getDType(type.getElementType());
  if (!known)
    return op->emitOpError("has dtype ") << type.getElementType() << ", which the runtime has not";
  runtime::DType dtype = *known;
  using Kind = runtime::StateEntry::Kind;
  auto makeState = [&](Kind kind, StringRef state, std::optional<double> init) {
    runtime::StateEntry entry;
    entry.kind = kind, entry.state = state.str(), entry.dtype = dtype, entry.init = init;
    entry.numel = type.getNumElements();
    return entry;
  };
  auto makePart = [&](Kind kind, auto part) -> RoleEntry {
    runtime::StateEntry entry = makeState(kind, part.getState(), toDouble(part.getInit()));
    entry.unit = part.getUnit().getValue().str();
    return entry;
  };
  auto makeWholeState = [&](StringRef name, StringRef state, std::optional<double> init) {
    runtime::StateEntry entry = makeState(Kind::Replicated, state, init);
    entry.name = name.str();
    entry.shape = type.getShape().vec();
    return entry;
  };
  auto makeWhole = [&](StringRef name, StringRef state, std::optional<double> init = std::nullopt) -> RoleEntry {
    return makeWholeState(name, state, init);
  };
  auto makeOutput = [&](runtime::Binding::Kind kind, StringRef path) -> RoleEntry {
    runtime::Output output;
    output.kind = kind, output.path = path.str(), output.dtype = dtype;
    return output;
  };
  return llvm::TypeSwitch<Attribute, FailureOr<RoleEntry>>(role)
      .Case([&](ShardAttr shard) { return makePart(Kind::Shard, shard); })
      .Case([&](TableAttr table) { return makePart(Kind::Table, table); })
      .Case([&](ParamAttr param) { return makeWhole(param.getName(), "param"); })
      .Case([&](BufferAttr buffer) -> RoleEntry {
        runtime::StateEntry entry = makeWholeState(buffer.getName(), "buffer", std::nullopt);
        entry.persistent = buffer.getPersistent();
        return entry;
      })
      .Case([&](ConstantAttr constant) { return makeWhole(constant.getName(), "constant"); })
      .Case([&](StateAttr state) { return makeWhole(state.getOf(), state.getState(), toDouble(state.getInit())); })
      .Case([&](RngAttr rng) { return makeWhole(rng.getName(), "rng", static_cast<double>(rng.getInit())); })
      .Case([&](BatchAttr batch) -> RoleEntry {
        runtime::BatchInput input;
        input.name = batch.getName().str(), input.dtype = dtype;
        return input;
      })
      .Case([&](HyperAttr hyper) -> RoleEntry {
        runtime::HyperParameter parameter;
        parameter.name = hyper.getName().str(), parameter.group = hyper.getGroup(), parameter.dtype = dtype;
        parameter.value = toDouble(hyper.getValue()).value_or(0);
        return parameter;
      })
      .Case([&](LossAttr loss) { return makeOutput(runtime::Binding::Kind::Loss, loss.getPath()); })
      .Case([&](OutputAttr output) { return makeOutput(runtime::Binding::Kind::Output, output.getPath()); })
      .Default([&](Attribute) { return op->emitOpError("has role ") << role << ", which names nothing of a step"; });
}
