//===- Layouts.cpp - Slices, embeddings, masks by position ----------------===//

#include "Layouts.h"

using namespace mlir;
using namespace spmd;

static SmallVector<NamedAttribute> rowAttributes(Emitter &emitter, int64_t dim, int64_t start, int64_t end,
                                                 int64_t step) {
  Builder &b = emitter.builder;
  return {emitter.named("dim", b.getI64IntegerAttr(dim)), emitter.named("start", b.getI64IntegerAttr(start)),
          emitter.named("end", b.getI64IntegerAttr(end)), emitter.named("step", b.getI64IntegerAttr(step))};
}

Value spmd::emitSlice(Emitter &emitter, Value value, int64_t dim, int64_t start, int64_t end, int64_t step) {
  RankedTensorType type = typeOf(value);
  if (start == 0 && end == type.getDimSize(dim) && step == 1)
    return value;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = (end - start + step - 1) / step;
  return emitter.createValue("slice.Tensor", value, rowAttributes(emitter, dim, start, end, step), type.clone(shape));
}

Value spmd::emitEmbed(Emitter &emitter, Value value, ArrayRef<int64_t> shape, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  RankedTensorType type = typeOf(value);
  if (type.getShape() == shape)
    return value;
  SmallVector<NamedAttribute> attrs = rowAttributes(emitter, dim, start, end, step);
  attrs.push_back(emitter.named("input_sizes", emitter.builder.getDenseI64ArrayAttr(shape)));
  return emitter.createValue("slice_backward", value, attrs, type.clone(shape));
}

Value spmd::emitReplace(Emitter &emitter, Value background, Value value, int64_t dim, int64_t start, int64_t end,
                        int64_t step) {
  if (typeOf(value) == typeOf(background))
    return value;
  return emitter.createValue("slice_scatter", {background, value}, rowAttributes(emitter, dim, start, end, step),
                             typeOf(background));
}

Value spmd::emitCat(Emitter &emitter, ArrayRef<Value> values, int64_t dim) {
  SmallVector<int64_t> shape(typeOf(values.front()).getShape());
  shape[dim] = 0;
  for (Value value : values)
    shape[dim] += typeOf(value).getDimSize(dim);
  return emitter.createValue("cat", values, emitter.named("dim", emitter.builder.getI64IntegerAttr(dim)),
                             typeOf(values.front()).clone(shape));
}

Value spmd::emitFlipOf(Emitter &emitter, Value value, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return value;
  return emitter.createValue("flip", value, emitter.named("dims", emitter.builder.getDenseI64ArrayAttr(dims)),
                             typeOf(value));
}

Value spmd::emitSum(Emitter &emitter, Value value, ArrayRef<int64_t> dims, bool keepDims, Type elementType) {
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool reduced = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!reduced || keepDims)
      shape.push_back(reduced ? 1 : size);
  }
  Builder &b = emitter.builder;
  return emitter.createValue("sum.dim_IntList", emitter.cast(value, elementType),
                             {emitter.named("dim", b.getDenseI64ArrayAttr(dims)),
                              emitter.named("keepdim", b.getBoolAttr(keepDims))},
                             RankedTensorType::get(shape, elementType));
}

Value spmd::emitArange(Emitter &emitter, int64_t count) {
  Builder &b = emitter.builder;
  return emitter.createValue("arange.start_step", {},
                             {emitter.named("start", b.getI64IntegerAttr(0)),
                              emitter.named("end", b.getI64IntegerAttr(count)),
                              emitter.named("step", b.getI64IntegerAttr(1))},
                             RankedTensorType::get({count}, b.getI64Type()));
}

Value spmd::emitDistance(Emitter &emitter, int64_t rows, int64_t columns) {
  Value row = emitter.view(emitArange(emitter, rows), {rows, 1});
  return emitter.createValue("sub.Tensor", {emitArange(emitter, columns), row}, {},
                             RankedTensorType::get({rows, columns}, emitter.builder.getI64Type()));
}

Value spmd::emitNumber(Emitter &emitter, RankedTensorType type, double number) {
  Builder &b = emitter.builder;
  Attribute attr = b.getF64FloatAttr(number);
  if (type.getElementType().isInteger(1))
    attr = b.getBoolAttr(number != 0);
  else if (!isa<FloatType>(type.getElementType()))
    attr = b.getI64IntegerAttr(static_cast<int64_t>(number));
  return emitter.full(type, attr);
}

Value spmd::emitZero(Emitter &emitter, RankedTensorType type) {
  return emitNumber(emitter, type.clone(ArrayRef<int64_t>()), 0);
}
