//===- DecomposeGradient.cpp - Gradient ops as smaller ops ----------------===//

#include "Decompose.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

static constexpr llvm::StringLiteral kGradients[] = {
    "native_layer_norm_backward", "_softmax_backward_data", "_log_softmax_backward_data", "tanh_backward",
    "sigmoid_backward",
};

ArrayRef<llvm::StringLiteral> spmd::getDecomposableGradients() { return kGradients; }

namespace {
/// Pointwise ops without scale factors; results broadcast.
class Expressions {
public:
  Expressions(RewriterBase &rewriter, Location loc) : rewriter(rewriter), loc(loc) {}

  Value mul(Value a, Value b) { return MulTensorOp::create(rewriter, loc, broadcast(a, b), a, b); }
  Value sub(Value a, Value b) {
    return SubTensorOp::create(rewriter, loc, broadcast(a, b), a, b, rewriter.getI64IntegerAttr(1));
  }
  Value rsub(Value a, double from) {
    return RsubScalarOp::create(rewriter, loc, a.getType(), a, rewriter.getF64FloatAttr(from),
                                rewriter.getI64IntegerAttr(1));
  }
  Value scale(Value a, double by) {
    return MulScalarOp::create(rewriter, loc, a.getType(), a, rewriter.getF64FloatAttr(by));
  }
  Value exp(Value a) { return ExpOp::create(rewriter, loc, a.getType(), a); }
  Value sum(Value a, ArrayRef<int64_t> dims, bool keepdim) {
    auto type = typeOf(a);
    SmallVector<int64_t> shape;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!llvm::is_contained(dims, dim))
        shape.push_back(type.getDimSize(dim));
      else if (keepdim)
        shape.push_back(1);
    }
    return SumDimIntListOp::create(rewriter, loc, type.clone(shape), a, rewriter.getDenseI64ArrayAttr(dims),
                                   rewriter.getBoolAttr(keepdim), TypeAttr());
  }

private:
  static RankedTensorType broadcast(Value a, Value b) {
    auto left = typeOf(a), right = typeOf(b);
    if (left.getRank() < right.getRank())
      std::swap(left, right);
    SmallVector<int64_t> shape(left.getShape());
    int64_t missing = left.getRank() - right.getRank();
    for (int64_t dim = 0; dim < right.getRank(); ++dim)
      shape[dim + missing] = std::max(shape[dim + missing], right.getDimSize(dim));
    return left.clone(shape);
  }

  RewriterBase &rewriter;
  Location loc;
};
} // namespace

/// With x' = (x - mean) * rstd, g = grad * weight and n inner elements:
/// dx = rstd * (g - sum(g)/n - x' * sum(g x')/n), dw = sum(grad x'), db = sum(grad).
static void decomposeLayerNorm(NativeLayerNormBackwardOp op, RewriterBase &rewriter) {
  Expressions build(rewriter, op.getLoc());
  RankedTensorType type = op.getInput().getType();
  int64_t leading = type.getRank() - op.getNormalizedShape().size();
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, leading));
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(leading, type.getRank()));
  double count = 1;
  for (int64_t dim : inner)
    count *= type.getDimSize(dim);

  Value grad = op.getGradOut();
  Value normal = build.mul(build.sub(op.getInput(), op.getMean()), op.getRstd());
  SmallVector<Value> results;
  if (op.getGradInput()) {
    Value scaled = op.getWeight() ? build.mul(grad, op.getWeight()) : grad;
    Value mean = build.scale(build.sum(scaled, inner, true), 1 / count);
    Value slope = build.scale(build.sum(build.mul(scaled, normal), inner, true), 1 / count);
    Value centred = build.sub(build.sub(scaled, mean), build.mul(normal, slope));
    results.push_back(build.mul(centred, op.getRstd()));
  }
  if (op.getGradWeight())
    results.push_back(build.sum(build.mul(grad, normal), rows, false));
  if (op.getGradBias())
    results.push_back(build.sum(grad, rows, false));
  rewriter.replaceOp(op, results);
}

LogicalResult spmd::decomposeGradient(Operation *op, RewriterBase &rewriter) {
  Expressions build(rewriter, op->getLoc());
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](NativeLayerNormBackwardOp norm) {
        decomposeLayerNorm(norm, rewriter);
        return success();
      })
      .Case([&](SoftmaxBackwardDataOp softmax) {
        Value weighted = build.mul(softmax.getGradOutput(), softmax.getOutput());
        Value total = build.sum(weighted, {static_cast<int64_t>(softmax.getDim())}, true);
        rewriter.replaceOp(op, build.sub(weighted, build.mul(softmax.getOutput(), total)));
        return success();
      })
      .Case([&](LogSoftmaxBackwardDataOp softmax) {
        Value total = build.sum(softmax.getGradOutput(), {static_cast<int64_t>(softmax.getDim())}, true);
        Value part = build.mul(build.exp(softmax.getOutput()), total);
        rewriter.replaceOp(op, build.sub(softmax.getGradOutput(), part));
        return success();
      })
      .Case([&](TanhBackwardOp tanh) {
        Value slope = build.rsub(build.mul(tanh.getOutput(), tanh.getOutput()), 1);
        rewriter.replaceOp(op, build.mul(tanh.getGradOutput(), slope));
        return success();
      })
      .Case([&](SigmoidBackwardOp sigmoid) {
        Value slope = build.mul(sigmoid.getOutput(), build.rsub(sigmoid.getOutput(), 1));
        rewriter.replaceOp(op, build.mul(sigmoid.getGradOutput(), slope));
        return success();
      })
      .Default([](Operation *) { return failure(); });
}
