//===- JoinSliceGradients.cpp - spmd-join-slice-gradients -----------------===//

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "spmd/Transforms/Movement/Passes.h"
#include "spmd/Transforms/SegmentListener.h"

namespace spmd {
#define GEN_PASS_DEF_JOINSLICEGRADIENTS
#include "spmd/Transforms/Movement/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

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

/// The gradients of the slices that `addends` begin with, in the order of their places, where they are slices of `dim`
/// of one tensor and together all of it. Sets `count` to how many there are.
static SmallVector<Value> findSlices(ArrayRef<Value> addends, int64_t &dim, size_t &count) {
  struct Slice {
    int64_t start, rows;
    Value gradient;
  };
  SmallVector<Slice> slices;
  int64_t rows = 0;
  for (Value addend : addends) {
    auto op = addend.getDefiningOp<aten::SliceBackwardOp>();
    if (!op || op.getStep() != 1)
      break;
    if (slices.empty())
      dim = op.getDim();
    if (static_cast<int64_t>(op.getDim()) != dim)
      break;
    int64_t size = typeOf(addend).getDimSize(dim);
    slices.push_back({static_cast<int64_t>(op.getStart()), typeOf(op.getGradOutput()).getDimSize(dim), op.getGradOutput()});
    rows += slices.back().rows;
    if (rows < size)
      continue;
    llvm::sort(slices, [](const Slice &a, const Slice &b) { return a.start < b.start; });
    int64_t end = 0;
    SmallVector<Value> gradients;
    for (const Slice &slice : slices) {
      if (slice.start != end)
        return {};
      end += slice.rows;
      gradients.push_back(slice.gradient);
    }
    count = slices.size();
    return end == size ? gradients : SmallVector<Value>();
  }
  return {};
}

/// Rewrites the sum that ends with `root`.
static void joinSlices(aten::AddTensorOp root, RewriterBase &rewriter) {
  SmallVector<Value> addends = getAddends(root), joined;
  rewriter.setInsertionPoint(root);
  for (size_t i = 0, count = 0; i < addends.size(); ++i) {
    int64_t dim = 0;
    SmallVector<Value> gradients = findSlices(ArrayRef(addends).drop_front(i), dim, count);
    if (gradients.size() < 2) {
      joined.push_back(addends[i]);
      continue;
    }
    joined.push_back(aten::CatOp::create(rewriter, root.getLoc(), root.getType(), gradients,
                                         rewriter.getI64IntegerAttr(dim)));
    i += count - 1;
  }
  if (joined.size() == addends.size())
    return;
  Value sum = joined.front();
  for (Value addend : ArrayRef(joined).drop_front())
    sum = aten::AddTensorOp::create(rewriter, root.getLoc(), root.getType(), sum, addend, root.getAlpha());
  rewriter.replaceOp(root, sum);
}

namespace {
struct JoinSliceGradientsPass : spmd::impl::JoinSliceGradientsBase<JoinSliceGradientsPass> {
  void runOnOperation() override {
    SegmentListener listener;
    IRRewriter rewriter(&getContext(), &listener);
    for (auto func : getOperation().getOps<func::FuncOp>())
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
  }
};
} // namespace
