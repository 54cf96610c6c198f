//===- NormalizeClassLosses.cpp - Losses of classes by number --------------===//

#include "Arithmetic.h"
#include "Normalize.h"
#include "RowAccess.h"

using namespace mlir;
using namespace spmd;

static void checkTarget(Emitter &emitter, Call &call) {
  BoundArg *target = call.find("target");
  Value self = call.value("self");
  if (!target || !target->isValue() || !self)
    return;
  RankedTensorType type = typeOf(self);
  int64_t classes = type.getDimSize(type.getRank() > 1 ? 1 : 0);
  target->values[0] =
      checkIndex(emitter, target->values[0], 0, classes, "nll_loss", call.integer("ignore_index", -100));
}

static LogicalResult emitNllLoss(Emitter &emitter, Call &call, Results &results) {
  checkTarget(emitter, call);
  return emitSameOp(emitter, call, results);
}

/// Losses of images are those of their pixels: [N, C, H, W] as [N H W, C].
static LogicalResult emitNllLoss2d(Emitter &emitter, Call &call, Results &results) {
  checkTarget(emitter, call);
  bool backward = call.op == "nll_loss2d_backward";
  RankedTensorType type = typeOf(call.value("self"));
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() != 4 || typeOf(call.value("target")).getNumElements() * shape[1] != type.getNumElements())
    return emitter.error("'") << call.op << "' of " << type << " and labels " << call.value("target").getType();
  int64_t pixels = shape[0] * shape[2] * shape[3], classes = shape[1];
  BoundArg *self = call.find("self"), *target = call.find("target");
  self->values[0] = emitter.view(emitter.permute(self->values[0], {0, 2, 3, 1}), {pixels, classes});
  target->values[0] = emitter.view(target->values[0], {pixels});
  RankedTensorType wanted = call.resultTypes[0];
  bool perPixel = call.integer("reduction", 1) == 0;
  if (backward) {
    call.op = "nll_loss_backward";
    if (BoundArg *grad = call.find("grad_output"); perPixel && grad)
      grad->values[0] = emitter.view(grad->values[0], {pixels});
    call.resultTypes[0] = wanted.clone({pixels, classes});
  } else {
    call.op = "nll_loss_forward";
    if (perPixel)
      call.resultTypes[0] = wanted.clone({pixels});
  }
  LogicalResult emitted = emitSameOp(emitter, call, results);
  call.resultTypes[0] = wanted;
  if (failed(emitted))
    return failure();
  if (backward)
    results[0] = emitter.permute(emitter.view(results[0], {shape[0], shape[2], shape[3], classes}), {0, 3, 1, 2});
  else
    results[0] = emitter.view(results[0], wanted.getShape());
  return success();
}

namespace {

/// The rows of a margin loss: self [N, C] or [C], as [N, C].
struct Rows {
  Rows(Emitter &emitter, Call &call)
      : emitter(emitter), a(emitter, Arithmetic::computeType(typeOf(call.value("self")).getElementType())),
        truth(emitter, emitter.builder.getI1Type()), ids(emitter, emitter.builder.getI64Type()) {
    RankedTensorType type = typeOf(call.value("self"));
    classes = type.getRank() == 0 ? 1 : type.getShape().back();
    count = classes == 0 ? 0 : type.getNumElements() / classes;
    self = emitter.view(call.value("self"), {count, classes});
    reduction = call.integer("reduction", 1);
  }

  /// The loss of rows, [N], as the call reduces it.
  Value reduced(Value rows, RankedTensorType wanted) {
    if (reduction == 0)
      return emitter.view(emitter.cast(rows, wanted.getElementType()), wanted.getShape());
    Value sum = a.sum(rows, {0});
    return emitter.cast(reduction == 1 ? a.div(sum, static_cast<double>(count)) : sum, wanted.getElementType());
  }
  /// `slope` [N, C], the gradient of the rows, times that of the result.
  Value timesGradient(Value slope, Value grad, RankedTensorType wanted) {
    if (reduction == 0)
      grad = emitter.view(grad, {count, 1});
    slope = a.mul(slope, grad);
    if (reduction == 1)
      slope = a.div(slope, static_cast<double>(count));
    return emitter.view(emitter.cast(slope, wanted.getElementType()), wanted.getShape());
  }

  Emitter &emitter;
  Arithmetic a, truth, ids;
  Value self;
  int64_t count = 0, classes = 0, reduction = 1;
};

/// sum over j != t of weight[t] max(0, margin - x[t] + x[j])^p / C.
struct MultiMargin : Rows {
  MultiMargin(Emitter &emitter, Call &call) : Rows(emitter, call) {
    Value target = emitter.view(call.value("target"), {count, 1});
    target = checkIndex(emitter, target, 0, classes, "multi_margin_loss");
    isTarget = ids.compare("eq.Tensor", ids.positions(classes, 1, 2), target);
    Value chosen = a.sum(a.where(isTarget, self, a.constant(0)), {1}, /*keepDims=*/true);
    distance = a.add(a.sub(self, chosen), call.number("margin", 1));
    counts = truth.binary("logical_and", truth.unary("logical_not", isTarget),
                          a.compare("gt.Tensor", distance, a.constant(0)));
    if (Value weight = call.value("weight"))
      scale = a.sum(a.where(isTarget, emitter.view(weight, {1, classes}), a.constant(0)), {1}, /*keepDims=*/true);
    isSquare = call.number("p", 1) == 2;
  }
  /// `terms` where they count, times what the row weighs.
  Value weighted(Value terms) {
    terms = a.div(a.where(counts, terms, a.constant(0)), static_cast<double>(classes));
    return scale ? a.mul(terms, scale) : terms;
  }

  Value isTarget, distance, counts, scale;
  bool isSquare = false;
};

/// sum over labels t and all j that are no label of max(0, 1 - x[t] + x[j]) / C. The labels of a row end before its
/// first negative number; one that stands twice counts twice. Dimensions are row, label, class.
struct MultilabelMargin : Rows {
  MultilabelMargin(Emitter &emitter, Call &call) : Rows(emitter, call) {
    Value target = emitter.view(call.value("target"), {count, classes});
    target = checkIndex(emitter, target, 0, classes, "multilabel_margin_loss", /*ignored=*/-1);
    Value ends = ids.compare("lt.Tensor", target, ids.constant(0));
    Builder &b = emitter.builder;
    RankedTensorType integers = typeOf(target).clone(b.getI64Type());
    Value ended = emitter.createValue("cumsum", emitter.cast(ends, b.getI64Type()),
                                      emitter.named("dim", b.getI64IntegerAttr(1)), integers);
    Value isLabel = emitter.view(ids.compare("eq.Tensor", ended, ids.constant(0)), {count, classes, 1});
    Value isClass = ids.compare("eq.Tensor", emitter.view(target, {count, classes, 1}), ids.positions(classes, 2, 3));
    isOf = truth.binary("logical_and", isLabel, isClass);
    isTarget = ids.compare("gt.Tensor", ids.sum(isOf, {1}, /*keepDims=*/true), ids.constant(0));
    Value row = emitter.view(self, {count, 1, classes});
    Value chosen = a.sum(a.where(isOf, row, a.constant(0)), {2}, /*keepDims=*/true);
    distance = a.add(a.sub(row, chosen), 1);
    counts = truth.binary("logical_and", truth.unary("logical_not", isTarget),
                          a.compare("gt.Tensor", distance, a.constant(0)));
    counts = truth.binary("logical_and", counts, emitter.view(isLabel, {count, classes, 1}));
  }

  Value isOf, isTarget, distance, counts;
};

} // namespace

static LogicalResult checkMargin(Emitter &emitter, Call &call, int64_t elements) {
  BoundArg *p = call.find("p"), *margin = call.find("margin");
  if (typeOf(call.value("target")).getNumElements() != elements)
    return emitter.error("'") << call.op << "' of " << call.value("self").getType() << " and labels "
                              << call.value("target").getType();
  if ((p && !p->isNumber()) || (margin && !margin->isNumber()))
    return emitter.error("'") << call.op << "' needs numbers p and margin";
  return success();
}

static int64_t numRows(Call &call) {
  RankedTensorType type = typeOf(call.value("self"));
  return type.getRank() > 1 ? type.getDimSize(0) : 1;
}

static LogicalResult emitMultiMargin(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkMargin(emitter, call, numRows(call))))
    return failure();
  MultiMargin loss(emitter, call);
  Value terms = loss.isSquare ? loss.a.mul(loss.distance, loss.distance) : loss.distance;
  results.push_back(loss.reduced(loss.a.sum(loss.weighted(terms), {1}), call.resultTypes[0]));
  return success();
}

static LogicalResult emitMultiMarginBackward(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkMargin(emitter, call, numRows(call))))
    return failure();
  MultiMargin loss(emitter, call);
  Value slope = loss.weighted(loss.isSquare ? loss.a.mul(loss.distance, 2) : loss.a.constant(1));
  Value ofTarget = loss.a.unary("neg", loss.a.sum(slope, {1}, /*keepDims=*/true));
  slope = loss.a.where(loss.isTarget, ofTarget, slope);
  results.push_back(loss.timesGradient(slope, call.value("grad_output"), call.resultTypes[0]));
  return success();
}

static LogicalResult emitMultilabelMargin(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkMargin(emitter, call, typeOf(call.value("self")).getNumElements())))
    return failure();
  MultilabelMargin loss(emitter, call);
  Value terms = loss.a.where(loss.counts, loss.distance, loss.a.constant(0));
  Value rows = loss.a.div(loss.a.sum(terms, {1, 2}), static_cast<double>(loss.classes));
  results.push_back(loss.reduced(rows, call.resultTypes[0]));
  RankedTensorType flags = call.resultTypes[1];
  results.push_back(emitter.view(emitter.cast(loss.isTarget, flags.getElementType()), flags.getShape()));
  return success();
}

static LogicalResult emitMultilabelMarginBackward(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkMargin(emitter, call, typeOf(call.value("self")).getNumElements())))
    return failure();
  MultilabelMargin loss(emitter, call);
  Value slopes = loss.a.where(loss.counts, loss.a.constant(1), loss.a.constant(0));
  Value perLabel = loss.a.sum(slopes, {2}, /*keepDims=*/true);
  Value ofLabels = loss.a.sum(loss.a.where(loss.isOf, perLabel, loss.a.constant(0)), {1});
  Value slope = loss.a.div(loss.a.sub(loss.a.sum(slopes, {1}), ofLabels), static_cast<double>(loss.classes));
  results.push_back(loss.timesGradient(slope, call.value("grad_output"), call.resultTypes[0]));
  return success();
}

void spmd::normalizeClassLosses(NormalizerTable &table) {
  for (StringRef op : {"nll_loss_forward", "nll_loss_backward"})
    table[op] = {&emitNllLoss, {"self", "target"}};
  for (StringRef op : {"nll_loss2d_forward", "nll_loss2d_backward"})
    table[op] = {&emitNllLoss2d, {"self", "target"}};
  table["multi_margin_loss"] = {&emitMultiMargin, {"self", "target"}};
  table["multi_margin_loss_backward"] = {&emitMultiMarginBackward, {"grad_output", "self", "target"}};
  table["multilabel_margin_loss_forward"] = {&emitMultilabelMargin, {"self", "target"}, 2};
  table["multilabel_margin_loss_backward"] = {&emitMultilabelMarginBackward, {"grad_output", "self", "target"}};
}
