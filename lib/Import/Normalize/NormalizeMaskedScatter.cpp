//===- NormalizeMaskedScatter.cpp - Elements in the order of a mask --------===//

#include "Layouts.h"
#include "Normalize.h"
#include "RowAccess.h"

using namespace mlir;
using namespace spmd;

/// Element i of what masked_scatter takes goes where the mask holds for the ith time: its number is how often the mask
/// held before. Elsewhere it is 0.
static RowAccess getMaskedAccess(Emitter &emitter, Value flatMask, int64_t elements) {
  Builder &b = emitter.builder;
  RankedTensorType type = typeOf(flatMask).clone(b.getI64Type());
  Value count = emitter.createValue("cumsum", emitter.cast(flatMask, b.getI64Type()),
                                    emitter.named("dim", b.getI64IntegerAttr(0)), type);
  Value before = emitter.createValue("sub.Scalar", count, emitter.named("other", b.getI64IntegerAttr(1)), type);
  Value number = emitter.createValue("where.self", {flatMask, before, emitZero(emitter, type)}, {}, type);
  RowAccess access;
  access.index = checkIndex(emitter, number, 0, elements, "masked_scatter");
  access.tablePermutation = access.rowsPermutation = {0};
  access.tableShape = {elements};
  return access;
}

static LogicalResult emitMaskedScatter(Emitter &emitter, Call &call, Results &results) {
  Value source = call.value("source"), self = call.value("self");
  RankedTensorType type = call.resultTypes[0];
  int64_t elements = typeOf(source).getNumElements();
  Ints flat = {type.getNumElements()};
  Value mask = emitter.view(emitter.expand(call.value("mask"), type.getShape()), flat);
  RowAccess access = getMaskedAccess(emitter, mask, elements);
  Value chosen = access.gather(emitter, emitter.view(source, {elements}));
  self = emitter.view(emitter.expand(self, type.getShape()), flat);
  Value result = emitter.createValue("where.self", {mask, chosen, self}, {}, typeOf(self));
  results.push_back(emitter.view(result, type.getShape()));
  return success();
}

/// The gradient of what masked_scatter took.
static LogicalResult emitMaskedScatterBackward(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0], gradType = typeOf(call.value("grad_output"));
  Ints flat = {gradType.getNumElements()};
  Value mask = emitter.view(emitter.expand(call.value("mask"), gradType.getShape()), flat);
  Value grad = emitter.view(call.value("grad_output"), flat);
  RowAccess access = getMaskedAccess(emitter, mask, type.getNumElements());
  Value kept = emitter.createValue("where.self", {mask, grad, emitZero(emitter, gradType)}, {}, typeOf(grad));
  Value sum = access.scatter(emitter, Value(), kept, {type.getNumElements()}, "sum");
  results.push_back(emitter.view(sum, type.getShape()));
  return success();
}

void spmd::normalizeMaskedScatter(NormalizerTable &table) {
  table["masked_scatter"] = {&emitMaskedScatter, {"self", "mask", "source"}};
  table["masked_scatter_backward"] = {&emitMaskedScatterBackward, {"grad_output", "mask"}};
}
