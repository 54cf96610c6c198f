//===- ShareKeyValueHeads.cpp - spmd-share-key-value-heads ----------------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Movement/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_SHAREKEYVALUEHEADS
#include "spmd/Transforms/Movement/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

static Value makeView(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  return aten::ViewOp::create(builder, loc, type, value, builder.getDenseI64ArrayAttr(type.getShape()));
}

namespace {

/// [batch, heads * times, rows, columns], made of [batch, heads, 1, rows, columns].
struct RepeatedHeads {
  Value heads;
  int64_t times = 1;

  RankedTensorType getType() const {
    ArrayRef<int64_t> shape = typeOf(heads).getShape();
    return typeOf(heads).clone({shape[0], shape[1], shape[3], shape[4]});
  }
  Value makeHeads(OpBuilder &builder, Location loc) const {
    auto view = heads.getDefiningOp<aten::ViewOp>();
    if (view && view.getSelf().getType() == getType())
      return view.getSelf();
    return makeView(builder, loc, heads, getType());
  }
};

} // namespace

static std::optional<RepeatedHeads> findRepeatedHeads(Value value) {
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<aten::ViewOp, aten::CloneOp>(op))
      break;
    value = op->getOperand(0);
  }
  auto expand = value.getDefiningOp<aten::ExpandOp>();
  if (!expand)
    return std::nullopt;
  ArrayRef<int64_t> from = typeOf(expand.getSelf()).getShape(), to = typeOf(expand.getResult()).getShape();
  if (from.size() != 5 || to.size() != 5 || from[2] != 1 || to[2] < 2)
    return std::nullopt;
  for (unsigned dim : {0, 1, 3, 4})
    if (from[dim] != to[dim])
      return std::nullopt;
  if (shape != ArrayRef<int64_t>({to[0], to[1] * to[2], to[3], to[4]}))
    return std::nullopt;
  return RepeatedHeads{expand.getSelf(), to[2]};
}

/// What sums the gradient of repeated heads over each group; nothing if anything else is done with it.
static std::optional<SmallVector<aten::SumDimIntListOp>> findGroupSums(Value gradient, const RepeatedHeads &repeated) {
  SmallVector<int64_t> grouped(typeOf(repeated.heads).getShape());
  grouped[2] = repeated.times;
  SmallVector<aten::SumDimIntListOp> sums;
  for (Operation *user : gradient.getUsers()) {
    auto view = dyn_cast<aten::ViewOp>(user);
    if (!view || typeOf(view.getResult()).getShape() != ArrayRef<int64_t>(grouped))
      return std::nullopt;
    for (Operation *reader : view->getUsers()) {
      auto sum = dyn_cast<aten::SumDimIntListOp>(reader);
      if (!sum || sum.getDim() != ArrayRef<int64_t>({2}) ||
          typeOf(sum.getResult()).getElementType() != typeOf(gradient).getElementType())
        return std::nullopt;
      sums.push_back(sum);
    }
  }
  return sums;
}

/// Sets key and value of `op` to the heads that they repeat.
template <typename OpTy>
static void shareHeads(OpTy op, const RepeatedHeads &key, const RepeatedHeads &value, RewriterBase &rewriter) {
  rewriter.setInsertionPoint(op);
  op.getKeyMutable().assign(key.makeHeads(rewriter, op.getLoc()));
  op.getValueMutable().assign(value.makeHeads(rewriter, op.getLoc()));
  op.setEnableGqa(true);
}

static void shareForward(aten::SdpaOp op, RewriterBase &rewriter) {
  auto key = findRepeatedHeads(op.getKey()), value = findRepeatedHeads(op.getValue());
  if (key && value && key->times == value->times)
    shareHeads(op, *key, *value, rewriter);
}

static void shareBackward(aten::SdpaBackwardOp op, RewriterBase &rewriter) {
  auto key = findRepeatedHeads(op.getKey()), value = findRepeatedHeads(op.getValue());
  if (!key || !value || key->times != value->times)
    return;
  auto keySums = findGroupSums(op.getGradKey(), *key), valueSums = findGroupSums(op.getGradValue(), *value);
  if (!keySums || !valueSums)
    return;
  shareHeads(op, *key, *value, rewriter);
  auto useSums = [&](TypedValue<RankedTensorType> gradient, const RepeatedHeads &repeated,
                     ArrayRef<aten::SumDimIntListOp> sums) {
    SmallVector<Operation *> views(gradient.getUsers());
    gradient.setType(repeated.getType());
    for (aten::SumDimIntListOp sum : sums) {
      rewriter.setInsertionPoint(sum);
      rewriter.replaceOp(sum, makeView(rewriter, sum.getLoc(), gradient, typeOf(sum.getResult())));
    }
    for (Operation *view : views)
      rewriter.eraseOp(view);
  };
  useSums(op.getGradKey(), *key, *keySums);
  useSums(op.getGradValue(), *value, *valueSums);
}

/// Erases the views, copies and expansions of which nothing is left.
static void eraseUnused(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<aten::ViewOp, aten::CloneOp, aten::ExpandOp>(op) && op.use_empty())
      op.erase();
}

namespace {
struct ShareKeyValueHeadsPass : FunctionPass<spmd::impl::ShareKeyValueHeadsBase<ShareKeyValueHeadsPass>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &listener) override {
    SmallVector<Operation *> attentions;
    func.walk([&](Operation *op) {
      if (isa<aten::SdpaOp, aten::SdpaBackwardOp>(op))
        attentions.push_back(op);
    });
    for (Operation *op : attentions) {
      listener.setSource(op);
      if (auto forward = dyn_cast<aten::SdpaOp>(op))
        shareForward(forward, rewriter);
      else
        shareBackward(cast<aten::SdpaBackwardOp>(op), rewriter);
    }
    for (Block &body : func.getBody())
      eraseUnused(body);
    return success();
  }
};
} // namespace
