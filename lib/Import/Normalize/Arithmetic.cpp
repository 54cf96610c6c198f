//===- Arithmetic.cpp - Captured ops written out as arithmetic ------------===//

#include "Arithmetic.h"

using namespace mlir;
using namespace spmd;

Type Arithmetic::computeType(Type type) {
  return type.isF16() || type.isBF16() ? Type(Float32Type::get(type.getContext())) : type;
}

static SmallVector<int64_t> broadcast(ArrayRef<Value> values) {
  SmallVector<int64_t> shape;
  for (Value value : values) {
    ArrayRef<int64_t> other = typeOf(value).getShape();
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (auto [mine, theirs] : llvm::zip(llvm::reverse(shape), llvm::reverse(other)))
      if (mine == 1)
        mine = theirs;
  }
  return shape;
}

Attribute Arithmetic::number(double value) {
  if (isa<FloatType>(type))
    return emitter.builder.getF64FloatAttr(value);
  return emitter.builder.getI64IntegerAttr(static_cast<int64_t>(value));
}

Value Arithmetic::binary(StringRef op, Value a, Value b) {
  return emitter.createValue(op, {get(a), get(b)}, {}, RankedTensorType::get(broadcast({a, b}), type));
}

Value Arithmetic::withNumber(StringRef op, Value a, double b) {
  return emitter.createValue(op, get(a), emitter.named("other", number(b)), typeOf(a).clone(type));
}

Value Arithmetic::unary(StringRef op, Value a) { return emitter.createValue(op, get(a), {}, typeOf(a).clone(type)); }

Value Arithmetic::constant(double value) { return emitter.full(RankedTensorType::get({}, type), number(value)); }

Value Arithmetic::where(Value condition, Value a, Value b) {
  return emitter.createValue("where.self", {condition, get(a), get(b)}, {},
                             RankedTensorType::get(broadcast({condition, a, b}), type));
}

Value Arithmetic::clamp(Value a, std::optional<double> low, std::optional<double> high) {
  SmallVector<NamedAttribute> bounds;
  if (high)
    bounds.push_back(emitter.named("max", number(*high)));
  if (low)
    bounds.push_back(emitter.named("min", number(*low)));
  return emitter.createValue("clamp", get(a), bounds, typeOf(a).clone(type));
}

Value Arithmetic::reduce(StringRef op, Value a, ArrayRef<int64_t> dims, bool keepDims) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(typeOf(a).getShape())) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
    else if (keepDims)
      shape.push_back(1);
  }
  return emitter.createValue(op, get(a),
                             {emitter.named("dim", emitter.builder.getDenseI64ArrayAttr(dims)),
                              emitter.named("keepdim", emitter.builder.getBoolAttr(keepDims))},
                             RankedTensorType::get(shape, type));
}

Value Arithmetic::compare(StringRef op, Value a, Value b) {
  return emitter.createValue(op, {get(a), get(b)}, {},
                             RankedTensorType::get(broadcast({a, b}), emitter.builder.getI1Type()));
}

Value Arithmetic::positions(int64_t count, int64_t dim, int64_t rank) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = count;
  Value flat = emitter.createValue(
      "arange.start_step", {},
      {emitter.named("start", number(0)), emitter.named("end", number(static_cast<double>(count))),
       emitter.named("step", number(1))},
      RankedTensorType::get({count}, type));
  return emitter.view(flat, shape);
}

Value Arithmetic::product(Value a, Value b) {
  return emitter.createValue("mm", {get(a), get(b)}, {},
                             RankedTensorType::get({typeOf(a).getDimSize(0), typeOf(b).getDimSize(1)}, type));
}
