//===- DecomposeFused.cpp - Fused optimizers as arithmetic ----------------===//
//
// [Note: where f64 ends]
// PyTorch's fused CPU kernels get hyper-parameters as doubles, compute bias
// corrections in double from the step counter, convert each coefficient to the
// parameter's type, and do elementwise arithmetic in that type, of f16 and bf16
// in f32: then results are rounded once, and nothing before them. Here too:
// coefficients are f64 scalars (or tables) until Lane::toLane converts them.
//
//===----------------------------------------------------------------------===//

#include "Decompose.h"
#include "Lane.h"

#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenPointwise.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

/// Groups of list position `index`; in chunk form, of all segments.
static ArrayRef<int64_t> laneGroups(ArrayRef<int64_t> groups, FlatSymbolRefAttr unit, unsigned index) {
  return unit ? groups : groups.slice(index, 1);
}

template <typename OpTy>
static Number learningRate(Lane &lane, OpTy op) {
  if (op.getLr().empty())
    return lane.fromGroups(*op.getLrValues());
  return lane.fromGroups(op.getLr());
}

/// 1 - lr * weight decay.
static Number decayFactor(Lane &lane, Number lr, Number weightDecay) {
  Number product = lane.mul(lr, weightDecay);
  return product.constant ? Number(1 - *product.constant) : Number(lane.rsub(product.value, 1));
}

/// 1 - x, of a hyper-parameter.
static Number complement(Lane &lane, Number number) {
  return number.constant ? Number(1 - *number.constant) : Number(lane.rsub(number.value, 1));
}

namespace {
struct AdamResults {
  Value param, expAvg, expAvgSq, maxExpAvgSq;
};
} // namespace

template <typename OpTy>
static AdamResults decomposeAdamLane(Lane &lane, OpTy op, unsigned index, bool decoupled) {
  Value param = lane.align(op.getSelf()[index]), grad = lane.align(op.getGrads()[index]);
  Value step = lane.toF64(op.getStateSteps()[index]);
  Number lr = learningRate(lane, op);
  Number beta1 = lane.fromGroups(op.getBeta1()), beta2 = lane.fromGroups(op.getBeta2());
  Number weightDecay = lane.fromGroups(op.getWeightDecay());

  Value correction1 = lane.rsub(lane.pow(beta1, step), 1);
  Value correction2 = lane.rsub(lane.pow(beta2, step), 1);
  Value stepSize = lr.constant ? lane.mul(lane.unary<ReciprocalOp>(correction1), lr) : lane.div(lr.value, correction1);
  // A reciprocal: 0 in the padding, where a divisor of 0 would give NaN.
  Value scale2 = lane.unary<RsqrtOp>(correction2);

  if (op.getMaximize())
    grad = lane.unary<NegOp>(grad);
  if (!weightDecay.is(0)) {
    if (decoupled)
      param = lane.mul(param, lane.toLane(decayFactor(lane, lr, weightDecay)));
    else
      grad = lane.add(grad, lane.mul(param, lane.toLane(weightDecay)));
  }
  AdamResults results;
  results.expAvg = lane.lerp(lane.align(op.getExpAvgs()[index]), grad, lane.toLane(complement(lane, beta1)));
  Value decayed = lane.mul(lane.align(op.getExpAvgSqs()[index]), lane.toLane(beta2));
  results.expAvgSq = lane.addcmul(decayed, grad, grad, lane.toLane(complement(lane, beta2)));
  Value second = results.expAvgSq;
  if (op.getAmsgrad())
    second = results.maxExpAvgSq = lane.binary<MaximumOp>(lane.align(op.getMaxExpAvgSqs()[index]), second);

  Value denominator = lane.mul(lane.unary<SqrtOp>(second), lane.toLane(Number(scale2)));
  Number eps = lane.fromGroups(op.getEps());
  denominator = lane.add(denominator, lane.toLane(eps));
  // A table of eps is 0 in the padding.
  if (!eps.constant)
    denominator = lane.clamp(denominator, *llvm::min_element(op.getEps()), std::nullopt);
  Value update = lane.div(lane.mul(results.expAvg, lane.toLane(Number(stepSize))), denominator);
  results.param = lane.sub(param, update);
  return results;
}

template <typename OpTy>
static LogicalResult decomposeAdam(OpTy op, RewriterBase &rewriter, bool decoupled) {
  SmallVector<Value> params, expAvgs, expAvgSqs, maxExpAvgSqs;
  for (unsigned i = 0; i < op.getSelf().size(); ++i) {
    Lane lane(rewriter, op.getLoc(), cast<RankedTensorType>(op.getSelf()[i].getType()), op.getUnitAttr(),
              laneGroups(op.getGroups(), op.getUnitAttr(), i));
    AdamResults results = decomposeAdamLane(lane, op, i, decoupled);
    params.push_back(lane.round(results.param, op.getSelf()[i].getType()));
    expAvgs.push_back(lane.round(results.expAvg, op.getExpAvgs()[i].getType()));
    expAvgSqs.push_back(lane.round(results.expAvgSq, op.getExpAvgSqs()[i].getType()));
    if (op.getAmsgrad())
      maxExpAvgSqs.push_back(lane.round(results.maxExpAvgSq, op.getMaxExpAvgSqs()[i].getType()));
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
    Lane lane(rewriter, op.getLoc(), cast<RankedTensorType>(op.getSelf()[i].getType()), op.getUnitAttr(),
              laneGroups(op.getGroups(), op.getUnitAttr(), i));
    Value param = lane.align(op.getSelf()[i]), grad = lane.align(op.getGrads()[i]);
    Number weightDecay = lane.fromGroups(op.getWeightDecay());
    Number momentum = lane.fromGroups(op.getMomentum());
    if (op.getMaximize())
      grad = lane.unary<NegOp>(grad);
    if (!weightDecay.is(0))
      grad = lane.add(grad, lane.mul(param, lane.toLane(weightDecay)));
    if (!op.getMomentumBufferList().empty()) {
      Value buffer = grad;
      if (!op.getIsFirstStep()) {
        Number weight = complement(lane, lane.fromGroups(op.getDampening()));
        Value fresh = weight.is(1) ? grad : lane.mul(grad, lane.toLane(weight));
        buffer = lane.add(lane.mul(lane.align(op.getMomentumBufferList()[i]), lane.toLane(momentum)), fresh);
      }
      buffers.push_back(lane.round(buffer, op.getMomentumBufferList()[i].getType()));
      grad = op.getNesterov() ? lane.add(grad, lane.mul(buffer, lane.toLane(momentum))) : buffer;
    }
    Value updated = lane.sub(param, lane.mul(grad, lane.toLane(learningRate(lane, op))));
    params.push_back(lane.round(updated, op.getSelf()[i].getType()));
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
