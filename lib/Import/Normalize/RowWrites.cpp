//===- RowWrites.cpp - What rows become that are written to ----------------===//

#include "RowWrites.h"
#include "llvm/ADT/APSInt.h"

using namespace mlir;
using namespace spmd;

std::optional<Reduction> spmd::parseReduction(StringRef name) {
  if (name == "sum" || name == "add")
    return Reduction::sum;
  if (name == "prod" || name == "multiply")
    return Reduction::prod;
  if (name == "mean")
    return Reduction::mean;
  if (name == "amax")
    return Reduction::amax;
  if (name == "amin")
    return Reduction::amin;
  return std::nullopt;
}

static Value scalarLike(Emitter &emitter, RankedTensorType type, double number) {
  return emitNumber(emitter, type.clone(ArrayRef<int64_t>()), number);
}

/// The value that `reduction` starts from where self does not count.
static Value neutralFor(Emitter &emitter, RankedTensorType type, Reduction reduction) {
  if (reduction == Reduction::sum || reduction == Reduction::mean)
    return scalarLike(emitter, type, 0);
  if (reduction == Reduction::prod)
    return scalarLike(emitter, type, 1);
  bool isMax = reduction == Reduction::amax;
  if (isa<FloatType>(type.getElementType()))
    return scalarLike(emitter, type, isMax ? -INFINITY : INFINITY);
  unsigned bits = type.getElementTypeBitWidth();
  if (bits == 1)
    return emitter.full(type.clone(ArrayRef<int64_t>()), emitter.builder.getI64IntegerAttr(isMax ? 0 : 1));
  bool isUnsigned = type.getElementType().isUnsignedInteger();
  APSInt bound = isMax ? APSInt::getMinValue(bits, isUnsigned) : APSInt::getMaxValue(bits, isUnsigned);
  return emitter.full(type.clone(ArrayRef<int64_t>()), emitter.builder.getI64IntegerAttr(bound.getExtValue()));
}

static Value addNumber(Emitter &emitter, Value value, double number) {
  return emitter.createValue("add.Scalar", value, emitter.named("other", emitter.builder.getF64FloatAttr(number)),
                             typeOf(value));
}

FailureOr<Value> spmd::emitWrite(Emitter &emitter, const RowAccess &access, Value self, Value src,
                                  Reduction reduction, bool includeSelf, StringRef op) {
  RankedTensorType type = typeOf(self);
  ArrayRef<int64_t> shape = type.getShape();
  if (reduction == Reduction::set)
    return access.scatter(emitter, isZero(self) ? Value() : self, src, shape, "set");
  if (reduction == Reduction::mean && !isa<FloatType>(type.getElementType()))
    return emitter.error("'") << op << "' of integers with reduce 'mean' is not supported";
  Value count;
  if (!includeSelf || reduction == Reduction::mean) {
    Value ones = emitter.expand(scalarLike(emitter, type, 1), typeOf(src).getShape());
    count = access.scatter(emitter, Value(), ones, shape, "sum");
  }
  if (!includeSelf) {
    Value isWritten = emitter.createValue(
        "gt.Scalar", count, emitter.named("other", emitter.builder.getI64IntegerAttr(0)),
        type.clone(emitter.builder.getI1Type()));
    self = emitter.createValue("where.self", {isWritten, neutralFor(emitter, type, reduction), self}, {}, type);
  }
  switch (reduction) {
  case Reduction::set:
    break;
  case Reduction::sum:
    return access.scatterSum(emitter, self, src);
  case Reduction::prod:
    return access.scatter(emitter, self, src, shape, "prod");
  case Reduction::amax:
    return access.scatter(emitter, self, src, shape, "amax");
  case Reduction::amin:
    return access.scatter(emitter, self, src, shape, "amin");
  case Reduction::mean: {
    Value sum = access.scatterSum(emitter, self, src);
    if (includeSelf)
      count = addNumber(emitter, count, 1);
    count = emitter.createValue("maximum", {count, scalarLike(emitter, type, 1)}, {}, type);
    return emitter.createValue("div.Tensor", {sum, count}, {}, type);
  }
  }
  llvm_unreachable("all reductions are handled");
}
