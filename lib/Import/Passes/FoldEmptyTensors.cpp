//===- FoldEmptyTensors.cpp - Ops on tensors without elements -------------===//

#include "dialects/Aten/Aten.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "spmd/Import/Passes.h"
#include "spmd/Transforms/StepPass.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace spmd::aten;

namespace spmd {
#define GEN_PASS_DEF_FOLDEMPTYTENSORSPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

static bool isEmpty(Value value) { return typeOf(value).getNumElements() == 0; }

/// Makes ops like `op`, before it.
static Value create(Operation *op, StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attrs, Type type) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), name, operands, type, attrs);
  if (Attribute segment = op->getAttr(spmd::kSegmentAttr))
    state.addAttribute(spmd::kSegmentAttr, segment);
  return builder.create(state)->getResult(0);
}

static Value fill(Operation *op, RankedTensorType type, double number) {
  Builder b(op->getContext());
  Attribute value = b.getF64FloatAttr(number);
  if (type.getElementType().isInteger(1))
    value = b.getBoolAttr(number != 0);
  else if (isa<IntegerType>(type.getElementType()))
    value = b.getI64IntegerAttr(static_cast<int64_t>(number));
  return create(op, FullOp::getOperationName(), {},
                {b.getNamedAttr("fill_value", value), b.getNamedAttr("size", b.getDenseI64ArrayAttr(type.getShape()))},
                type);
}

/// `bias` times beta, as far as the product of nothing goes.
static Value scaledBias(Operation *op, Value bias, Attribute beta) {
  Builder b(op->getContext());
  RankedTensorType type = typeOf(op->getResult(0));
  // The bias is ignored then, whatever it is.
  if (matchPattern(beta, m_AnyZeroFloat()) || matchPattern(beta, m_Zero()))
    return fill(op, type, 0);
  if (typeOf(bias) != type)
    bias = create(op, ExpandOp::getOperationName(), bias,
                  b.getNamedAttr("size", b.getDenseI64ArrayAttr(type.getShape())), type);
  return create(op, MulScalarOp::getOperationName(), bias, b.getNamedAttr("other", beta), type);
}

/// What an op gives that has elements, but some operand of which has none; null if nothing is known.
static Value foldEmptyOperand(Operation *op) {
  RankedTensorType type = typeOf(op->getResult(0));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<SumDimIntListOp, MmOp, BmmOp, SliceBackwardOp, EmbeddingDenseBackwardOp>(
          [&](auto) { return fill(op, type, 0); })
      .Case<MeanDimOp>([&](auto) { return fill(op, type, kNaN); })
      .Case<ProdDimIntOp>([&](auto) { return fill(op, type, 1); })
      .Case<AddmmOp, BaddbmmOp>([&](auto product) { return scaledBias(op, product.getSelf(), product.getBetaAttr()); })
      .Case<SliceScatterOp>([&](auto write) { return isEmpty(write.getSrc()) ? write.getSelf() : Value(); })
      .Case<ScatterRowsOp>([&](ScatterRowsOp write) { return write.getSelf() ? write.getSelf() : fill(op, type, 0); })
      .Case<CatOp>([&](CatOp cat) {
        SmallVector<Value> parts =
            llvm::to_vector(llvm::make_filter_range(cat.getTensors(), [](Value v) { return !isEmpty(v); }));
        return parts.size() == 1 ? parts[0]
                                 : create(op, CatOp::getOperationName(), parts,
                                          OpBuilder(op).getNamedAttr("dim", cat.getDimAttr()), type);
      })
      .Default([](Operation *) { return Value(); });
}

/// The parts of a split that have elements.
static void splitRest(SplitWithSizesOp split) {
  OpBuilder builder(split);
  SmallVector<int64_t> sizes;
  SmallVector<Type> types;
  SmallVector<Value> parts;
  for (auto [size, part] : llvm::zip_equal(split.getSplitSizes(), split.getResults())) {
    if (isEmpty(part)) {
      part.replaceAllUsesWith(fill(split, typeOf(part), 0));
      continue;
    }
    sizes.push_back(size);
    types.push_back(part.getType());
    parts.push_back(part);
  }
  OperationState state(split.getLoc(), SplitWithSizesOp::getOperationName(), split->getOperands(), types,
                       split->getAttrs());
  state.attributes.set("split_sizes", builder.getDenseI64ArrayAttr(sizes));
  Operation *rest = builder.create(state);
  for (auto [part, kept] : llvm::zip_equal(parts, rest->getResults()))
    part.replaceAllUsesWith(kept);
  split.erase();
}

namespace {

struct FoldEmptyTensorsPass : spmd::StepPass<spmd::impl::FoldEmptyTensorsPassBase<FoldEmptyTensorsPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    for (Operation &op : llvm::make_early_inc_range(step.getOps()))
      fold(&op);
    for (FullOp full : llvm::make_early_inc_range(step.getOps<FullOp>()))
      if (isEmpty(full.getResult()) && full->use_empty())
        full.erase();
    return success();
  }

  /// In program order: what an operand became, its users see.
  static void fold(Operation *op) {
    if (!isa<AtenOpInterface>(op) || op->getNumResults() == 0)
      return;
    if (llvm::all_of(op->getResults(), isEmpty)) {
      if (isa<FullOp>(op))
        return;
      for (Value result : op->getResults())
        result.replaceAllUsesWith(fill(op, typeOf(result), 0));
      op->erase();
    } else if (auto split = dyn_cast<SplitWithSizesOp>(op); split && llvm::any_of(op->getResults(), isEmpty)) {
      splitRest(split);
    } else if (op->getNumResults() == 1 && llvm::any_of(op->getOperands(), isEmpty)) {
      if (Value value = foldEmptyOperand(op)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
      }
    }
  }
};

} // namespace
