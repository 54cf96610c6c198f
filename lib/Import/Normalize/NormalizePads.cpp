//===- NormalizePads.cpp - Pads and their gradients -----------------------===//
//
// A pad is pieces side by side; its gradient adds up what was read twice.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "Normalize.h"

using namespace mlir;
using namespace spmd;

namespace {

enum class PadKind { reflection, replication };

/// Rows before and after one dimension; negative: rows taken away.
struct Pad {
  int64_t dim, before, after;
};

} // namespace

/// Pads are listed from the last dimension to the front.
static SmallVector<Pad> readPads(ArrayRef<int64_t> list, int64_t rank) {
  SmallVector<Pad> pads;
  for (size_t i = 0; i + 1 < list.size(); i += 2) {
    Pad pad{rank - 1 - static_cast<int64_t>(i / 2), list[i], list[i + 1]};
    if (pad.before != 0 || pad.after != 0)
      pads.push_back(pad);
  }
  return pads;
}

static LogicalResult emitConstantPad(Emitter &emitter, Call &call, Results &results) {
  Value value = call.value("self");
  RankedTensorType type = typeOf(value);
  Ints list = getIntegers(call, "pad");
  if (static_cast<int64_t>(list.size()) > 2 * type.getRank())
    return emitter.error("'constant_pad_nd' pads ") << list.size() / 2 << " dimensions of " << type;
  double number = call.number("value", 0);
  for (Pad pad : readPads(list, type.getRank())) {
    int64_t size = typeOf(value).getDimSize(pad.dim);
    value = emitSlice(emitter, value, pad.dim, std::max<int64_t>(0, -pad.before),
                      size - std::max<int64_t>(0, -pad.after));
    int64_t before = std::max<int64_t>(0, pad.before), after = std::max<int64_t>(0, pad.after);
    size = typeOf(value).getDimSize(pad.dim);
    if (before + after == 0)
      continue;
    Ints shape(typeOf(value).getShape());
    shape[pad.dim] += before + after;
    if (number == 0)
      value = emitEmbed(emitter, value, shape, pad.dim, before, before + size);
    else
      value =
          emitReplace(emitter, emitNumber(emitter, type.clone(shape), number), value, pad.dim, before, before + size);
  }
  results.push_back(value);
  return success();
}

/// What lies before or after the rows of a dimension.
static Value padRows(Emitter &emitter, Value value, PadKind kind, int64_t dim, int64_t rows, bool before) {
  int64_t size = typeOf(value).getDimSize(dim);
  if (kind == PadKind::reflection) {
    Value edge = before ? emitSlice(emitter, value, dim, 1, rows + 1)
                        : emitSlice(emitter, value, dim, size - 1 - rows, size - 1);
    return emitFlipOf(emitter, edge, {dim});
  }
  Value edge = before ? emitSlice(emitter, value, dim, 0, 1) : emitSlice(emitter, value, dim, size - 1, size);
  Ints shape(typeOf(edge).getShape());
  shape[dim] = rows;
  return emitter.expand(edge, shape);
}

static Value padDim(Emitter &emitter, Value value, PadKind kind, Pad pad) {
  SmallVector<Value> pieces;
  if (pad.before > 0)
    pieces.push_back(padRows(emitter, value, kind, pad.dim, pad.before, /*before=*/true));
  pieces.push_back(value);
  if (pad.after > 0)
    pieces.push_back(padRows(emitter, value, kind, pad.dim, pad.after, /*before=*/false));
  Value padded = pieces.size() == 1 ? value : emitCat(emitter, pieces, pad.dim);
  int64_t size = typeOf(padded).getDimSize(pad.dim);
  return emitSlice(emitter, padded, pad.dim, std::max<int64_t>(0, -pad.before),
                   size - std::max<int64_t>(0, -pad.after));
}

/// The transpose of padDim; `size` rows before padding.
static Value unpadDim(Emitter &emitter, Value grad, PadKind kind, Pad pad, int64_t size) {
  int64_t before = std::max<int64_t>(0, pad.before), after = std::max<int64_t>(0, pad.after);
  Ints shape(typeOf(grad).getShape());
  int64_t rows = shape[pad.dim], cut = std::max<int64_t>(0, -pad.before);
  shape[pad.dim] = before + size + after;
  if (shape[pad.dim] != rows)
    grad = emitEmbed(emitter, grad, shape, pad.dim, cut, cut + rows);
  shape[pad.dim] = size;
  Value sum = emitSlice(emitter, grad, pad.dim, before, before + size);
  auto add = [&](Value edge, int64_t start) {
    int64_t end = start + typeOf(edge).getDimSize(pad.dim);
    Value placed = emitEmbed(emitter, edge, shape, pad.dim, start, end);
    sum = emitter.createValue("add.Tensor", {sum, placed}, {}, typeOf(sum));
  };
  for (bool isBefore : {true, false}) {
    int64_t count = isBefore ? before : after;
    if (count == 0)
      continue;
    Value edge = isBefore ? emitSlice(emitter, grad, pad.dim, 0, count)
                          : emitSlice(emitter, grad, pad.dim, before + size, before + size + count);
    if (kind == PadKind::reflection)
      add(emitFlipOf(emitter, edge, {pad.dim}), isBefore ? 1 : size - 1 - count);
    else
      add(emitSum(emitter, edge, {pad.dim}, /*keepDims=*/true, typeOf(edge).getElementType()), isBefore ? 0 : size - 1);
  }
  return sum;
}

template <PadKind kind>
static LogicalResult emitPad(Emitter &emitter, Call &call, Results &results) {
  Value value = call.value("self");
  SmallVector<Pad> pads = readPads(getIntegers(call, "padding"), typeOf(value).getRank());
  if (!pads.empty() && pads.back().dim < 0)
    return refuseDim(emitter, call, pads.back().dim, typeOf(value).getRank());
  for (Pad pad : pads)
    value = padDim(emitter, value, kind, pad);
  results.push_back(value);
  return success();
}

template <PadKind kind>
static LogicalResult emitPadBackward(Emitter &emitter, Call &call, Results &results) {
  Value grad = call.value("grad_output");
  RankedTensorType self = typeOf(call.value("self"));
  SmallVector<Pad> pads = readPads(getIntegers(call, "padding"), self.getRank());
  if (!pads.empty() && pads.back().dim < 0)
    return refuseDim(emitter, call, pads.back().dim, self.getRank());
  for (Pad pad : llvm::reverse(pads))
    grad = unpadDim(emitter, grad, kind, pad, self.getDimSize(pad.dim));
  results.push_back(grad);
  return success();
}

void spmd::normalizePads(NormalizerTable &table) {
  table["constant_pad_nd"] = {&emitConstantPad, {"self"}};
  for (StringRef n : {"1", "2", "3"}) {
    table[("reflection_pad" + n + "d").str()] = {&emitPad<PadKind::reflection>, {"self"}};
    table[("replication_pad" + n + "d").str()] = {&emitPad<PadKind::replication>, {"self"}};
    table[("reflection_pad" + n + "d_backward").str()] = {&emitPadBackward<PadKind::reflection>,
                                                          {"grad_output", "self"}};
    table[("replication_pad" + n + "d_backward").str()] = {&emitPadBackward<PadKind::replication>,
                                                           {"grad_output", "self"}};
  }
}
