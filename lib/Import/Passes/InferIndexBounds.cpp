//===- InferIndexBounds.cpp - Where row numbers have to be checked --------===//

#include "IntegerRange.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Import/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace spmd {
#define GEN_PASS_DEF_INFERINDEXBOUNDSPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using aten::CheckIndexOp;

namespace {

/// What the checks of an input ask of its values.
struct Bounds {
  std::optional<int64_t> bound, ignored;
  /// Some check allows nothing but row numbers.
  bool strict = false;

  void add(CheckIndexOp check) {
    int64_t high = check.getHigh();
    bound = bound ? std::min(*bound, high) : high;
    std::optional<int64_t> other = check.getIgnoreIndex();
    strict |= !other || (ignored && *ignored != *other);
    if (other)
      ignored = other;
  }
};

class Inference {
public:
  explicit Inference(func::FuncOp step) : step(step) {}
  void run();

private:
  bool isProven(Value value, CheckIndexOp check);
  bool collectInputs(Value value, CheckIndexOp check, llvm::SetVector<BlockArgument> &inputs);

  func::FuncOp step;
  IntegerRanges ranges;
};

struct InferIndexBoundsPass : StepPass<spmd::impl::InferIndexBoundsPassBase<InferIndexBoundsPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    Inference(step).run();
    return success();
  }
};

} // namespace

bool Inference::isProven(Value value, CheckIndexOp check) {
  aten::KnownRange range = ranges.get(value);
  int64_t low = check.getLow(), high = check.getHigh();
  if (!range)
    return false;
  return (range->low >= low && range->high < high) ||
         (range->low == range->high && check.getIgnoreIndex() == range->low);
}

/// Follows a value to the batch inputs whose elements it has. False if it has
/// others, which are not proven to pass.
bool Inference::collectInputs(Value value, CheckIndexOp check, llvm::SetVector<BlockArgument> &inputs) {
  if (isProven(value, check))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!getArgRole<BatchAttr>(step, argument.getArgNumber()))
      return false;
    inputs.insert(argument);
    return true;
  }
  Operation *op = value.getDefiningOp();
  return aten::movesIntegers(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return collectInputs(operand, check, inputs); });
}

void Inference::run() {
  Builder builder(step.getContext());
  llvm::MapVector<BlockArgument, Bounds> bounds;
  for (CheckIndexOp check : llvm::make_early_inc_range(step.getOps<CheckIndexOp>())) {
    llvm::SetVector<BlockArgument> inputs;
    bool everything = collectInputs(check.getSelf(), check, inputs);
    // An input is checked against [0, bound) only.
    if (!everything || (!inputs.empty() && static_cast<int64_t>(check.getLow()) != 0))
      continue;
    for (BlockArgument input : inputs)
      bounds[input].add(check);
    check.getResult().replaceAllUsesWith(check.getSelf());
    check.erase();
  }
  for (auto &[input, of] : bounds) {
    step.setArgAttr(input.getArgNumber(), kIndexBoundAttr, builder.getI64IntegerAttr(*of.bound));
    if (of.ignored && !of.strict)
      step.setArgAttr(input.getArgNumber(), kIgnoreIndexAttr, builder.getI64IntegerAttr(*of.ignored));
  }
}
