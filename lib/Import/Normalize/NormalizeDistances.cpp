//===- NormalizeDistances.cpp - Distances of all rows, products of three --===//

#include "Arithmetic.h"
#include "Layouts.h"
#include "Normalize.h"

#include <cmath>

using namespace mlir;
using namespace spmd;

/// x1 [.., P, M] less x2 [.., R, M], row by row: [.., P, R, M].
static Value emitDifferences(Emitter &emitter, Arithmetic &a, Value x1, Value x2) {
  Ints left(typeOf(x1).getShape()), right(typeOf(x2).getShape());
  left.insert(left.end() - 1, 1);
  right.insert(right.end() - 2, 1);
  return a.sub(emitter.view(x1, left), emitter.view(x2, right));
}

static LogicalResult checkRows(Emitter &emitter, Call &call) {
  RankedTensorType x1 = typeOf(call.value("x1")), x2 = typeOf(call.value("x2"));
  BoundArg *p = call.find("p");
  if (x1.getRank() < 2 || x2.getRank() < 2 || (p && !p->isNumber()) || x1.getShape().back() != x2.getShape().back())
    return emitter.error("'") << call.op << "' of " << x1 << " and " << x2;
  return success();
}

/// The order of the norm. PyTorch has an op of its own, without one, for Euclidean distances of many rows: by a
/// product, which rounds more.
static double getOrder(Call &call) {
  BoundArg *p = call.find("p");
  return p ? p->number() : 2;
}

/// The norm of the difference of every two rows: one pass over both for each.
static LogicalResult emitCdist(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkRows(emitter, call)))
    return failure();
  RankedTensorType type = call.resultTypes[0];
  Arithmetic a(emitter, type.getElementType());
  Value differences = emitDifferences(emitter, a, call.value("x1"), call.value("x2"));
  Builder &b = emitter.builder;
  int64_t last = typeOf(differences).getRank() - 1;
  results.push_back(emitter.createValue("linalg_vector_norm", differences,
                                        {emitter.named("ord", b.getF64FloatAttr(getOrder(call))),
                                         emitter.named("dim", b.getDenseI64ArrayAttr({last})),
                                         emitter.named("keepdim", b.getBoolAttr(false))},
                                        type));
  return success();
}

/// The gradient of x1. PyTorch's (aten/src/ATen/native/cpu/DistanceOpsKernel.cpp): with d = |x1 - x2|, the sign of the
/// difference times (d / distance)^(p - 1), and nothing where the distance is 0.
static LogicalResult emitCdistBackward(Emitter &emitter, Call &call, Results &results) {
  if (failed(checkRows(emitter, call)))
    return failure();
  RankedTensorType type = call.resultTypes[0];
  Arithmetic a(emitter, type.getElementType());
  double p = getOrder(call);
  Value differences = emitDifferences(emitter, a, call.value("x1"), call.value("x2"));
  int64_t rank = typeOf(differences).getRank();
  auto column = [&](Value value) {
    Ints shape(typeOf(value).getShape());
    shape.push_back(1);
    return emitter.view(value, shape);
  };
  Value grad = column(call.value("grad")), distance = column(call.value("cdist")), zero = a.constant(0), slope;
  if (type.getRank() + 1 != rank || typeOf(grad).getRank() != rank || typeOf(distance).getRank() != rank)
    return emitter.error("'") << call.op << "' of batches that broadcast is not supported";
  Value isZero = a.compare("eq.Tensor", distance, zero);
  if (p == 0) {
    slope = a.mul(differences, 0);
  } else if (p == 1) {
    slope = a.unary("sgn", differences);
  } else if (p == 2) {
    slope = a.where(isZero, zero, a.div(differences, distance));
  } else if (std::isinf(p)) {
    Value isLargest = a.compare("eq.Tensor", a.unary("abs", differences), distance);
    slope = a.where(isLargest, a.unary("sgn", differences), zero);
  } else {
    Value ratio = a.div(a.unary("abs", differences), a.where(isZero, a.constant(1), distance));
    Value power = emitter.createValue("pow.Tensor_Scalar", ratio,
                                      emitter.named("exponent", emitter.builder.getF64FloatAttr(p - 1)), typeOf(ratio));
    // At 0 the power of a small order is infinite, and the sign 0.
    Value isEqual = a.compare("eq.Tensor", differences, zero);
    Value skipped = emitter.createValue("logical_or", {isZero, isEqual}, {}, typeOf(isEqual));
    slope = a.where(skipped, zero, a.mul(a.unary("sgn", differences), power));
  }
  results.push_back(a.sum(a.mul(slope, grad), {rank - 2}));
  return success();
}

/// The sum of the products of three tensors with ones inserted into their shapes.
static LogicalResult emitTrilinear(Emitter &emitter, Call &call, Results &results) {
  Arithmetic a(emitter, call.resultTypes[0].getElementType());
  Value product;
  for (auto [name, expand] : {std::pair("i1", "expand1"), std::pair("i2", "expand2"), std::pair("i3", "expand3")}) {
    Value value = call.value(name);
    Ints shape(typeOf(value).getShape());
    for (int64_t dim : getIntegers(call, expand)) {
      if (dim < 0 || dim > static_cast<int64_t>(shape.size()))
        return refuseDim(emitter, call, dim, shape.size());
      shape.insert(shape.begin() + dim, 1);
    }
    value = emitter.view(value, shape);
    product = product ? a.mul(product, value) : value;
  }
  results.push_back(a.sum(product, getIntegers(call, "sumdim")));
  return success();
}

/// a[1] b[2] - a[2] b[1] and so on around, along a dimension of three.
static LogicalResult emitCross(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  int64_t dim = wrapDim(call.integer("dim", -1), type.getRank());
  if (dim < 0 || dim >= type.getRank() || type.getDimSize(dim) != 3)
    return refuseDim(emitter, call, dim, type.getRank());
  Arithmetic a(emitter, type.getElementType());
  auto turned = [&](StringRef name, int64_t by) {
    Value value = emitter.expand(call.value(name), type.getShape());
    return emitCat(emitter, {emitSlice(emitter, value, dim, by, 3), emitSlice(emitter, value, dim, 0, by)}, dim);
  };
  results.push_back(a.sub(a.mul(turned("self", 1), turned("other", 2)), a.mul(turned("self", 2), turned("other", 1))));
  return success();
}

void spmd::normalizeDistances(NormalizerTable &table) {
  table["_cdist_forward"] = {&emitCdist, {"x1", "x2"}};
  table["_euclidean_dist"] = {&emitCdist, {"x1", "x2"}};
  table["_cdist_backward"] = {&emitCdistBackward, {"grad", "x1", "x2", "cdist"}};
  table["_trilinear"] = {&emitTrilinear, {"i1", "i2", "i3"}};
  table["linalg_cross"] = {&emitCross, {"self", "other"}};
}
