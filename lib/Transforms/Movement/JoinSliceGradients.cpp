//===- JoinSliceGradients.cpp - spmd-join-slice-gradients -----------------===//

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Movement/Passes.h"
#include <utility>

namespace spmd {
#define GEN_PASS_DEF_JOINSLICEGRADIENTS
#include "spmd/Transforms/Movement/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// The op makes one value of another of its type of elements, and moves them or changes their signs: what is moved, or
/// is linear in it element by element.
static bool isViewOrSign(Operation *op) {
  auto iface = dyn_cast<aten::AtenOpInterface>(op);
  if (!iface || op->getNumOperands() != 1 ||
      typeOf(op->getOperand(0)).getElementType() != typeOf(op->getResult(0)).getElementType())
    return false;
  if (iface.movesElements())
    return true;
  FailureOr<aten::ShardingRule> rule =
      iface.isPointwise() ? iface.getShardingRule() : FailureOr<aten::ShardingRule>(failure());
  return succeeded(rule) && rule->linearity == aten::Linearity::additive;
}

/// Whether `a` and `b` are made of one value, or of the results of one op, by views and signs alone.
static bool haveOneSource(Value a, Value b) {
  auto getSource = [](Value value) {
    while (value.getDefiningOp() && isViewOrSign(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    return value;
  };
  a = getSource(a);
  b = getSource(b);
  return a == b || (a.getDefiningOp() && a.getDefiningOp() == b.getDefiningOp());
}

/// Whether `op` adds two tensors of its result's type, as they are.
static bool isPlainSum(aten::AddTensorOp op) {
  return aten::getScalarValue(op.getAlpha()) == 1 &&
         llvm::all_of(op->getOperandTypes(), [&](Type type) { return type == op.getType(); });
}

/// What `root` adds up, in order: ((a + b) + c) + d.
static SmallVector<Value> getAddends(aten::AddTensorOp root) {
  SmallVector<Value> addends;
  for (aten::AddTensorOp op = root;;) {
    addends.push_back(op.getOther());
    auto inner = op.getSelf().getDefiningOp<aten::AddTensorOp>();
    if (!inner || !inner->hasOneUse() || !isPlainSum(inner)) {
      addends.push_back(op.getSelf());
      break;
    }
    op = inner;
  }
  return {addends.rbegin(), addends.rend()};
}

namespace {
struct Slice {
  int64_t start, rows;
  Value gradient;
};
/// Slices along `dim`, in the order of their places.
struct Slices {
  SmallVector<Slice> slices;
  int64_t dim = 0;
};
} // namespace

/// The slices whose gradients `addends` begin with, where they have one source, lie side by side along one dim of one
/// tensor and together are all of it; nothing otherwise.
static std::optional<Slices> findSlices(ArrayRef<Value> addends) {
  Slices found;
  int64_t rows = 0;
  for (Value addend : addends) {
    auto op = addend.getDefiningOp<aten::SliceBackwardOp>();
    if (!op || op.getStep() != 1)
      return std::nullopt;
    if (found.slices.empty())
      found.dim = op.getDim();
    else if (static_cast<int64_t>(op.getDim()) != found.dim ||
             !haveOneSource(op.getGradOutput(), found.slices.front().gradient))
      return std::nullopt;
    int64_t size = typeOf(addend).getDimSize(found.dim);
    found.slices.push_back({static_cast<int64_t>(op.getStart()), typeOf(op.getGradOutput()).getDimSize(found.dim),
                            op.getGradOutput()});
    rows += found.slices.back().rows;
    if (rows < size)
      continue;
    llvm::sort(found.slices, [](const Slice &a, const Slice &b) { return a.start < b.start; });
    int64_t end = 0;
    for (const Slice &slice : found.slices)
      if (std::exchange(end, slice.start + slice.rows) != slice.start)
        return std::nullopt;
    return end == size && found.slices.size() > 1 ? std::optional(found) : std::nullopt;
  }
  return std::nullopt;
}

/// Rewrites the sum that ends with `root`.
static void joinSlices(aten::AddTensorOp root, RewriterBase &rewriter) {
  SmallVector<Value> addends = getAddends(root), joined;
  rewriter.setInsertionPoint(root);
  for (ArrayRef<Value> rest = addends; !rest.empty();) {
    std::optional<Slices> found = findSlices(rest);
    if (!found) {
      joined.push_back(rest.front());
      rest = rest.drop_front();
      continue;
    }
    SmallVector<Value> gradients =
        llvm::map_to_vector(found->slices, [](const Slice &slice) { return slice.gradient; });
    joined.push_back(aten::CatOp::create(rewriter, root.getLoc(), root.getType(), gradients,
                                         rewriter.getI64IntegerAttr(found->dim)));
    rest = rest.drop_front(gradients.size());
  }
  if (joined.size() == addends.size())
    return;
  Value sum = joined.front();
  for (Value addend : ArrayRef(joined).drop_front())
    sum = aten::AddTensorOp::create(rewriter, root.getLoc(), root.getType(), sum, addend, root.getAlpha());
  rewriter.replaceOp(root, sum);
}

namespace {
struct JoinSliceGradientsPass : FunctionPass<spmd::impl::JoinSliceGradientsBase<JoinSliceGradientsPass>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &listener) override {
    for (Block &body : func.getBody())
      // From the end: the last addition of a sum comes first, and what it no longer reads after it.
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
        if (isa<aten::AddTensorOp, aten::SliceBackwardOp>(op) && op.use_empty()) {
          op.erase();
        } else if (auto sum = dyn_cast<aten::AddTensorOp>(op); sum && isPlainSum(sum)) {
          listener.setSource(sum);
          joinSlices(sum, rewriter);
        }
      }
    return success();
  }
};
} // namespace
