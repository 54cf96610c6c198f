//===- WidenStepCounters.cpp - Bias corrections in f64 --------------------===//
//
// The counters of an optimizer's steps, and what is computed of them and of numbers alone, are Python's doubles in
// eager: `1 - beta2 ** step`. Captured they are 0-dim f32 tensors, in which such differences keep few digits.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Import/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace spmd::aten;

namespace spmd {
#define GEN_PASS_DEF_WIDENSTEPCOUNTERSPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

/// 0-dim f32, which is what a Python number becomes that a capture makes a tensor of.
static bool isNarrow(Value value) { return typeOf(value).getRank() == 0 && typeOf(value).getElementType().isF32(); }

/// Parameters of groups whose steps eager counts in Python numbers: `capturable` is false.
static llvm::StringSet<> getEagerParameters(ModuleOp module) {
  llvm::StringSet<> names;
  auto groups = module->getAttrOfType<ArrayAttr>("spmd.param_groups");
  if (!groups)
    return names;
  for (auto group : groups.getAsRange<DictionaryAttr>()) {
    auto capturable = group.getAs<BoolAttr>("capturable");
    auto parameters = group.getAs<ArrayAttr>("parameters");
    if (capturable && !capturable.getValue() && parameters)
      for (auto name : parameters.getAsRange<StringAttr>())
        names.insert(name.getValue());
  }
  return names;
}

namespace {

/// Finds what depends on counters and numbers alone, and computes it in f64.
class Widening {
public:
  Widening(func::FuncOp step, ModuleOp module) : step(step) {
    llvm::StringSet<> names = getEagerParameters(module);
    for (BlockArgument arg : step.getArguments()) {
      auto state = spmd::getArgRole<spmd::StateAttr>(step, arg.getArgNumber());
      if (state && isNarrow(arg) && names.contains(state.getOf()))
        counters.insert(arg);
    }
    Operation *end = step.getBody().front().getTerminator();
    stored.insert(end->operand_begin(), end->operand_end());
  }

  void run() {
    if (counters.empty())
      return;
    findScalars();
    for (Operation &op : llvm::make_early_inc_range(step.getOps()))
      if (llvm::any_of(op.getResults(), [&](Value result) { return counted.contains(result); }))
        widen(&op);
      else
        narrowOperands(&op);
  }

private:
  func::FuncOp step;
  /// State that is no parameter's in shape: what an update makes of it depends on such and numbers alone.
  llvm::DenseSet<Value> counters;
  /// Values that depend on counters and numbers alone.
  llvm::DenseSet<Value> scalars;
  /// Those of them that a counter is part of.
  llvm::DenseSet<Value> counted;
  /// Results of the step, whose types stay.
  llvm::DenseSet<Value> stored;
  /// The f64 value of an f32 one; of what an op that was widened gives, itself.
  DenseMap<Value, Value> wide;

  static bool isNumber(Operation *op) { return isa<FullOp, ScalarTensorOp>(op); }

  /// The 0-dim moments of a 0-dim parameter look like counters until their updates are seen: without them, again.
  void findScalars() {
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      scalars = counted = counters;
      for (BlockArgument arg : step.getArguments())
        if (spmd::getArgRole<spmd::HyperAttr>(step, arg.getArgNumber()))
          scalars.insert(arg);
      for (Operation &op : step.getOps())
        if (isa<AtenOpInterface>(op) && isMemoryEffectFree(&op) && (isNumber(&op) || op.getNumOperands() > 0) &&
            llvm::all_of(op.getResults(), [](Value result) { return typeOf(result).getRank() == 0; }) &&
            llvm::all_of(op.getOperands(), [&](Value operand) { return scalars.contains(operand); })) {
          scalars.insert(op.result_begin(), op.result_end());
          if (llvm::any_of(op.getOperands(), [&](Value operand) { return counted.contains(operand); }))
            counted.insert(op.result_begin(), op.result_end());
        }
      Operation *end = step.getBody().front().getTerminator();
      for (BlockArgument arg : step.getArguments()) {
        std::optional<unsigned> update = spmd::findUpdate(step, arg.getArgNumber());
        if (update && counters.contains(arg) && !scalars.contains(end->getOperand(*update)))
          isChanged |= counters.erase(arg);
      }
    }
  }

  Operation *create(Operation *before, StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attrs,
                    TypeRange types) {
    OpBuilder builder(before);
    OperationState state(before->getLoc(), name, operands, types, attrs);
    if (Attribute segment = before->getAttr(spmd::kSegmentAttr))
      state.addAttribute(spmd::kSegmentAttr, segment);
    return builder.create(state);
  }

  /// `values` as `type`, one op for all of them, before `op`.
  ResultRange cast(Operation *op, ArrayRef<Value> values, FloatType type) {
    Builder b(op->getContext());
    SmallVector<Type> types(values.size(), RankedTensorType::get({}, type));
    NamedAttribute dtype = b.getNamedAttr("dtype", TypeAttr::get(type));
    if (values.size() == 1)
      return create(op, ToCopyOp::getOperationName(), values, dtype, types)->getResults();
    return create(op, ForeachMapOp::getOperationName(), values,
                  {b.getNamedAttr("op", b.getStringAttr("_to_copy")),
                   b.getNamedAttr("options", b.getDictionaryAttr(dtype))},
                  types)
        ->getResults();
  }

  /// Makes `op` compute in f64; what the step returns stays, and is widened where it is read.
  void widen(Operation *op) {
    if (llvm::any_of(op->getResults(), [&](Value result) { return stored.contains(result); }))
      return narrowOperands(op);
    SmallVector<Value> missing;
    for (Value operand : op->getOperands())
      if (isNarrow(operand) && !wide.contains(operand) && !llvm::is_contained(missing, operand))
        missing.push_back(operand);
    if (!missing.empty())
      for (auto [value, result] : llvm::zip_equal(missing, cast(op, missing, Float64Type::get(op->getContext()))))
        wide[value] = result;
    for (OpOperand &operand : op->getOpOperands())
      if (Value value = wide.lookup(operand.get()))
        operand.set(value);
    for (Value result : op->getResults())
      if (isNarrow(result)) {
        result.setType(RankedTensorType::get({}, Float64Type::get(op->getContext())));
        wide[result] = result;
        if (op->hasAttr("dtype"))
          op->setAttr("dtype", TypeAttr::get(Float64Type::get(op->getContext())));
      }
  }

  /// A 0-dim f64 operand beside tensors with dims changes no type. Beside other 0-dim ones it would.
  void narrowOperands(Operation *op) {
    SmallVector<Value> values;
    bool isScalar = llvm::any_of(op->getResults(), [](Value result) { return typeOf(result).getRank() == 0; });
    for (Value operand : op->getOperands())
      if (auto found = wide.find(operand); isScalar && found != wide.end() && found->second == operand &&
                                           !llvm::is_contained(values, operand))
        values.push_back(operand);
    if (values.empty())
      return;
    ResultRange narrow = cast(op, values, Float32Type::get(op->getContext()));
    for (OpOperand &operand : op->getOpOperands())
      if (auto *at = llvm::find(values, operand.get()); at != values.end())
        operand.set(narrow[at - values.begin()]);
  }
};

struct WidenStepCountersPass : spmd::StepPass<spmd::impl::WidenStepCountersPassBase<WidenStepCountersPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    Widening(step, getOperation()).run();
    return success();
  }
};

} // namespace
