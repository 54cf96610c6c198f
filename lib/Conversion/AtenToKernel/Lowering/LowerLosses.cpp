//===- LowerLosses.cpp - losses and their gradients -----------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenHeavy.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

enum Reduction { kNone = 0, kMean = 1, kSum = 2 };

/// What forward and backward of nll_loss have in common: log-probabilities as [rows, classes], targets as [rows, 1],
/// and class numbers as [1, classes]. The chosen class is where class number and target agree, so that rows are never
/// gathered and the whole loss fuses with the softmax before it.
struct ClassTargets {
  int64_t rows, classes;
  Ref target, classNumber;

  ClassTargets(GraphBuilder &g, RankedTensorType probabilities, Value targetValue) {
    classes = probabilities.getShape().back();
    rows = probabilities.getNumElements() / classes;
    target = g.reshape(g.get(targetValue), {rows, 1});
    classNumber = g.reshape(g.iota(classes, target.getElementType()), {1, classes});
  }
};

LogicalResult checkRank(Operation *op, RankedTensorType probabilities) {
  if (probabilities.getRank() > 2)
    return op->emitOpError("has no kernel for log-probabilities of rank ") << probabilities.getRank();
  return success();
}

LogicalResult lowerNllForward(GraphBuilder &g, aten::NllLossForwardOp op) {
  RankedTensorType selfType = typeOf(op.getSelf());
  if (failed(checkRank(op, selfType)))
    return failure();
  Type type = selfType.getElementType();
  ClassTargets t(g, selfType, op.getTarget());
  Type indexType = t.target.getElementType();
  int64_t ignored = op.getIgnoreIndex();

  // sum over classes of (class == target ? value : 0): one term that is not zero, so exact.
  auto pick = [&](Ref values) {
    Ref chosen = g.pointwise({t.classNumber, t.target, values}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      Value isTarget = ScalarBuilder(b, indexType).compare("eq", args[0], args[1]);
      return ScalarBuilder(b, type).select(isTarget, args[2], ScalarBuilder(b, type).constant(0));
    });
    return g.reduce(kernel::ReduceKind::Add, chosen, {1}, /*keepDims=*/true);
  };
  Ref picked;
  if (const LogSoftmaxParts *parts = g.findLogSoftmax(op.getSelf())) {
    // The logarithm of one probability per row, instead of all.
    Ref chosen = pick(g.reshape(parts->input, {t.rows, t.classes}));
    Ref max = g.reshape(parts->max, {t.rows, 1}), sum = g.reshape(parts->sum, {t.rows, 1});
    picked = g.pointwise({chosen, max, sum}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder s(b, type);
      return s.sub(s.sub(args[0], args[1]), s.log(args[2]));
    });
  } else {
    picked = pick(g.reshape(g.get(op.getSelf()), {t.rows, t.classes}));
  }
  Ref weight = op.getWeight() ? pick(g.reshape(g.get(op.getWeight()), {1, t.classes})) : g.constant(1.0, type, {});
  Ref rowWeight = g.pointwise({t.target, weight}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder index(b, indexType), s(b, type);
    return s.select(index.compare("eq", args[0], index.constant(ignored)), s.constant(0), args[1]);
  });
  Ref rowLoss = g.pointwise({t.target, picked, rowWeight}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder index(b, indexType), s(b, type);
    Value isIgnored = index.compare("eq", args[0], index.constant(ignored));
    return s.select(isIgnored, s.constant(0), s.mul(s.neg(args[1]), args[2]));
  });

  Ref loss = rowLoss, total = g.constant(0.0, type, {});
  if (op.getReduction() != kNone) {
    loss = g.reduce(kernel::ReduceKind::Add, rowLoss, {0, 1}, /*keepDims=*/false);
    total = g.reduce(kernel::ReduceKind::Add, rowWeight, {0, 1}, /*keepDims=*/false);
  }
  if (op.getReduction() == kMean)
    loss = g.pointwise({loss, total}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      return ScalarBuilder(b, type).div(args[0], args[1]);
    });
  g.set(op.getOutput(), g.reshape(loss, typeOf(op.getOutput()).getShape()));
  g.set(op.getTotalWeight(), g.reshape(total, typeOf(op.getTotalWeight()).getShape()));
  return success();
}

LogicalResult lowerNllBackward(GraphBuilder &g, aten::NllLossBackwardOp op) {
  RankedTensorType selfType = typeOf(op.getSelf());
  if (failed(checkRank(op, selfType)))
    return failure();
  Type type = selfType.getElementType();
  ClassTargets t(g, selfType, op.getTarget());
  Type indexType = t.target.getElementType();
  int64_t ignored = op.getIgnoreIndex();
  bool isMean = op.getReduction() == kMean;

  Ref grad = g.get(op.getGradOutput());
  grad = g.reshape(grad, {grad.getNumElements(), 1});
  Ref weight = op.getWeight() ? g.reshape(g.get(op.getWeight()), {1, t.classes}) : g.constant(1.0, type, {});
  SmallVector<Ref> inputs = {t.classNumber, t.target, grad, weight};
  if (isMean)
    inputs.push_back(g.get(op.getTotalWeight()));
  auto slopeWhere = [=](ImplicitLocOpBuilder &b, Value condition, ValueRange args) {
    ScalarBuilder s(b, type);
    Value slope = s.mul(s.neg(args[2]), args[3]);
    if (isMean)
      slope = s.div(slope, args[4]);
    return s.select(condition, slope, s.constant(0));
  };
  auto counts = [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder index(b, indexType);
    return index.compare("ne", args[1], index.constant(ignored));
  };
  Ref value = g.pointwise(inputs, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    Value isTarget = ScalarBuilder(b, indexType).compare("eq", args[0], args[1]);
    return slopeWhere(b, arith::AndIOp::create(b, isTarget, counts(b, args)), args);
  });
  g.set(op.getResult(), g.reshape(value, selfType.getShape()));
  if (op.getWeight() || selfType.getRank() != 2)
    return success();
  // One class of a row has the slope: that is the row's sum.
  inputs[0] = t.target;
  g.setRowSum(op.getResult(), g.pointwise(inputs, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
                return slopeWhere(b, counts(b, args), args);
              }));
  return success();
}

void lowerMse(GraphBuilder &g, aten::MseLossOp op) {
  Type type = typeOf(op.getResult()).getElementType(), compute = getComputeType(type);
  Ref squares =
      g.pointwise({g.get(op.getSelf()), g.get(op.getTarget())}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
        ScalarBuilder s(b, compute);
        return s.square(s.sub(castScalar(b, args[0], compute), castScalar(b, args[1], compute)));
      });
  double count = squares.getNumElements();
  if (op.getReduction() != kNone)
    squares = g.reduce(kernel::ReduceKind::Add, squares, allDims(squares.shape.size()), /*keepDims=*/false);
  if (op.getReduction() == kMean)
    squares = g.pointwise({squares}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder s(b, compute);
      return s.div(args[0], s.constant(count));
    });
  g.set(op.getResult(), g.cast(squares, type));
}

void lowerMseBackward(GraphBuilder &g, aten::MseLossBackwardOp op) {
  RankedTensorType resultType = typeOf(op.getResult());
  Type type = resultType.getElementType(), compute = getComputeType(type);
  double norm = op.getReduction() == kMean ? 2.0 / resultType.getNumElements() : 2.0;
  Ref value = g.pointwise({g.get(op.getGradOutput()), g.get(op.getSelf()), g.get(op.getTarget())}, type,
                          [=](ImplicitLocOpBuilder &b, ValueRange args) {
                            ScalarBuilder s(b, compute);
                            auto arg = [&](unsigned i) { return castScalar(b, args[i], compute); };
                            Value slope = s.mul(s.constant(norm), s.sub(arg(1), arg(2)));
                            return castScalar(b, s.mul(slope, arg(0)), type);
                          });
  g.set(op.getResult(), value);
}

} // namespace

Lowered lowerLossOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::NllLossForwardOp nll) -> Lowered { return lowerNllForward(g, nll); })
      .Case([&](aten::NllLossBackwardOp nll) -> Lowered { return lowerNllBackward(g, nll); })
      .Case([&](aten::MseLossOp mse) -> Lowered {
        lowerMse(g, mse);
        return success();
      })
      .Case([&](aten::MseLossBackwardOp mse) -> Lowered {
        lowerMseBackward(g, mse);
        return success();
      })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
