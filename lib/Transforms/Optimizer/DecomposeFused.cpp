//===- DecomposeFused.cpp - Fused optimizers as arithmetic ----------------===//
//
// [Note: where f64 ends]
// PyTorch's fused CPU kernels get hyper-parameters as doubles, compute bias
// corrections in double from the step counter, convert each coefficient to the
// parameter's type, and do elementwise arithmetic in that type, of f16 and bf16
// in f32: then results are rounded once, and nothing before them. Here too:
// coefficients are f64 scalars (or tables) until UpdateBuilder::toElements converts them.
//
//===----------------------------------------------------------------------===//

#include "Decompose.h"
#include "UpdateBuilder.h"

#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/TensorType.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

/// Groups of list position `index`; in chunk form, of all segments.
static ArrayRef<int64_t> laneGroups(ArrayRef<int64_t> groups, FlatSymbolRefAttr unit, unsigned index) {
  return unit ? groups : groups.slice(index, 1);
}

template <typename OpTy>
static Number learningRate(UpdateBuilder &b, OpTy op) {
  if (op.getLr().empty())
    return b.fromGroups(*op.getLrValues());
  return b.fromGroups(op.getLr());
}

/// 1 - lr * weight decay.
static Number decayFactor(UpdateBuilder &b, Number lr, Number weightDecay) {
  Number product = b.mul(lr, weightDecay);
  return product.constant ? Number(1 - *product.constant) : Number(b.rsub(product.value, 1));
}

/// 1 - x, of a hyper-parameter.
static Number complement(UpdateBuilder &b, Number number) {
  return number.constant ? Number(1 - *number.constant) : Number(b.rsub(number.value, 1));
}

namespace {
struct AdamResults {
  Value param, expAvg, expAvgSq, maxExpAvgSq;
};
} // namespace

template <typename OpTy>
static AdamResults decomposeAdamAt(UpdateBuilder &b, OpTy op, unsigned index, bool decoupled) {
  Value param = b.align(op.getSelf()[index]), grad = b.align(op.getGrads()[index]);
  Value step = b.toF64(op.getStateSteps()[index]);
  Number lr = learningRate(b, op);
  Number beta1 = b.fromGroups(op.getBeta1()), beta2 = b.fromGroups(op.getBeta2());
  Number weightDecay = b.fromGroups(op.getWeightDecay());

  Value correction1 = b.rsub(b.pow(beta1, step), 1);
  Value correction2 = b.rsub(b.pow(beta2, step), 1);
  Value stepSize = lr.constant ? b.mul(b.unary<ReciprocalOp>(correction1), lr) : b.div(lr.value, correction1);
  // A reciprocal: 0 in the padding, where a divisor of 0 would give NaN.
  Value scale2 = b.unary<RsqrtOp>(correction2);

  if (op.getMaximize())
    grad = b.unary<NegOp>(grad);
  if (!weightDecay.is(0)) {
    if (decoupled)
      param = b.mul(param, b.toElements(decayFactor(b, lr, weightDecay)));
    else
      grad = b.add(grad, b.mul(param, b.toElements(weightDecay)));
  }
  AdamResults results;
  results.expAvg = b.lerp(b.align(op.getExpAvgs()[index]), grad, b.toElements(complement(b, beta1)));
  Value decayed = b.mul(b.align(op.getExpAvgSqs()[index]), b.toElements(beta2));
  results.expAvgSq = b.addcmul(decayed, grad, grad, b.toElements(complement(b, beta2)));
  Value second = results.expAvgSq;
  if (op.getAmsgrad())
    second = results.maxExpAvgSq = b.binary<MaximumOp>(b.align(op.getMaxExpAvgSqs()[index]), second);

  Value denominator = b.mul(b.unary<SqrtOp>(second), b.toElements(Number(scale2)));
  Number eps = b.fromGroups(op.getEps());
  denominator = b.add(denominator, b.toElements(eps));
  // A table of eps is 0 in the padding.
  if (!eps.constant)
    denominator = b.clamp(denominator, *llvm::min_element(op.getEps()), std::nullopt);
  Value update = b.div(b.mul(results.expAvg, b.toElements(Number(stepSize))), denominator);
  results.param = b.sub(param, update);
  return results;
}

template <typename OpTy>
static LogicalResult decomposeAdam(OpTy op, RewriterBase &rewriter, bool decoupled) {
  SmallVector<Value> params, expAvgs, expAvgSqs, maxExpAvgSqs;
  for (unsigned i = 0; i < op.getSelf().size(); ++i) {
    UpdateBuilder b(rewriter, op.getLoc(), typeOf(op.getSelf()[i]), op.getUnitAttr(),
                    laneGroups(op.getGroups(), op.getUnitAttr(), i));
    AdamResults results = decomposeAdamAt(b, op, i, decoupled);
    params.push_back(b.round(results.param, op.getSelf()[i].getType()));
    expAvgs.push_back(b.round(results.expAvg, op.getExpAvgs()[i].getType()));
    expAvgSqs.push_back(b.round(results.expAvgSq, op.getExpAvgSqs()[i].getType()));
    if (op.getAmsgrad())
      maxExpAvgSqs.push_back(b.round(results.maxExpAvgSq, op.getMaxExpAvgSqs()[i].getType()));
  }
  params.append(expAvgs);
  params.append(expAvgSqs);
  params.append(maxExpAvgSqs);
  rewriter.replaceOp(op, params);
  return success();
}

static LogicalResult decomposeSgd(FusedSgdOp op, RewriterBase &rewriter) {
  SmallVector<Value> params, buffers;
  for (unsigned i = 0; i < op.getSelf().size(); ++i) {
    UpdateBuilder b(rewriter, op.getLoc(), typeOf(op.getSelf()[i]), op.getUnitAttr(),
                    laneGroups(op.getGroups(), op.getUnitAttr(), i));
    Value param = b.align(op.getSelf()[i]), grad = b.align(op.getGrads()[i]);
    Number weightDecay = b.fromGroups(op.getWeightDecay());
    Number momentum = b.fromGroups(op.getMomentum());
    if (op.getMaximize())
      grad = b.unary<NegOp>(grad);
    if (!weightDecay.is(0))
      grad = b.add(grad, b.mul(param, b.toElements(weightDecay)));
    if (!op.getMomentumBufferList().empty()) {
      Value buffer = grad;
      if (!op.getIsFirstStep()) {
        Number weight = complement(b, b.fromGroups(op.getDampening()));
        Value fresh = weight.is(1) ? grad : b.mul(grad, b.toElements(weight));
        buffer = b.add(b.mul(b.align(op.getMomentumBufferList()[i]), b.toElements(momentum)), fresh);
      }
      buffers.push_back(b.round(buffer, op.getMomentumBufferList()[i].getType()));
      grad = op.getNesterov() ? b.add(grad, b.mul(buffer, b.toElements(momentum))) : buffer;
    }
    Value updated = b.sub(param, b.mul(grad, b.toElements(learningRate(b, op))));
    params.push_back(b.round(updated, op.getSelf()[i].getType()));
  }
  params.append(buffers);
  rewriter.replaceOp(op, params);
  return success();
}

LogicalResult spmd::decomposeFused(Operation *op, RewriterBase &rewriter) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](FusedAdamOp adam) { return decomposeAdam(adam, rewriter, /*decoupled=*/false); })
      .Case([&](FusedAdamwOp adam) { return decomposeAdam(adam, rewriter, /*decoupled=*/true); })
      .Case([&](FusedSgdOp sgd) { return decomposeSgd(sgd, rewriter); })
      .Default([](Operation *) { return failure(); });
}
