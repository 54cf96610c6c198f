//===- NormalizeDiagonals.cpp - Diagonals of matrices ---------------------===//
//
// A diagonal is every (columns + 1)th element in flat order.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "Normalize.h"

using namespace mlir;
using namespace spmd;

namespace {

/// The diagonal of dims a and b of a tensor.
struct Diagonal {
  Ints permutation, flat, matrices;
  int64_t start = 0, end = 0, step = 1;

  Diagonal(ArrayRef<int64_t> shape, int64_t offset, int64_t a, int64_t b) {
    int64_t rank = shape.size(), rows = shape[a], columns = shape[b];
    for (int64_t dim = 0; dim < rank; ++dim)
      if (dim != a && dim != b)
        permutation.push_back(dim);
    for (int64_t dim : permutation)
      flat.push_back(shape[dim]);
    permutation.append({a, b});
    matrices = flat;
    matrices.append({rows, columns});
    flat.push_back(rows * columns);
    int64_t length =
        std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
    step = columns + 1;
    start = length == 0 ? 0 : offset >= 0 ? offset : -offset * columns;
    end = length == 0 ? 0 : start + (length - 1) * step + 1;
  }
  int64_t dim() const { return flat.size() - 1; }
  Value flatten(Emitter &emitter, Value matrix) const {
    return emitter.view(emitter.permute(matrix, permutation), flat);
  }
  Value unflatten(Emitter &emitter, Value value) const {
    Ints inverse(permutation.size());
    for (auto [to, from] : llvm::enumerate(permutation))
      inverse[from] = to;
    return emitter.permute(emitter.view(value, matrices), inverse);
  }
};

} // namespace

static FailureOr<Diagonal> readDiagonal(Emitter &emitter, Call &call, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size();
  int64_t a = wrapDim(call.integer("dim1", 0), rank), b = wrapDim(call.integer("dim2", 1), rank);
  if (a < 0 || b < 0 || a >= rank || b >= rank || a == b)
    return emitter.error("'") << call.op << "' of dimensions " << a << " and " << b << " of a tensor of rank " << rank;
  return Diagonal(shape, call.integer("offset", 0), a, b);
}

static LogicalResult emitDiagonal(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  FailureOr<Diagonal> diagonal = readDiagonal(emitter, call, typeOf(self).getShape());
  if (failed(diagonal))
    return failure();
  results.push_back(emitSlice(emitter, diagonal->flatten(emitter, self), diagonal->dim(), diagonal->start,
                              diagonal->end, diagonal->step));
  return success();
}

static LogicalResult emitDiagonalBackward(Emitter &emitter, Call &call, Results &results) {
  bool embeds = call.op == "diag_embed";
  RankedTensorType type = call.resultTypes[0];
  if (embeds) {
    setInteger(call, "dim1", call.integer("dim1", -2));
    setInteger(call, "dim2", call.integer("dim2", -1));
  }
  FailureOr<Diagonal> diagonal = readDiagonal(emitter, call, type.getShape());
  if (failed(diagonal))
    return failure();
  Value grad = call.value(embeds ? "self" : "grad_output");
  results.push_back(diagonal->unflatten(emitter, emitEmbed(emitter, grad, diagonal->flat, diagonal->dim(),
                                                           diagonal->start, diagonal->end, diagonal->step)));
  return success();
}

static LogicalResult emitDiagonalScatter(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  FailureOr<Diagonal> diagonal = readDiagonal(emitter, call, typeOf(self).getShape());
  if (failed(diagonal))
    return failure();
  Value flat = diagonal->flatten(emitter, self);
  flat = emitReplace(emitter, flat, call.value("src"), diagonal->dim(), diagonal->start, diagonal->end,
                     diagonal->step);
  results.push_back(diagonal->unflatten(emitter, flat));
  return success();
}

static LogicalResult emitTrace(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  if (typeOf(self).getRank() != 2)
    return refuseDim(emitter, call, 1, typeOf(self).getRank());
  Diagonal diagonal(typeOf(self).getShape(), 0, 0, 1);
  Value entries = emitSlice(emitter, diagonal.flatten(emitter, self), 0, diagonal.start, diagonal.end, diagonal.step);
  results.push_back(emitSum(emitter, entries, {0}, /*keepDims=*/false, call.resultTypes[0].getElementType()));
  return success();
}

static LogicalResult emitBlockDiag(Emitter &emitter, Call &call, Results &results) {
  BoundArg *tensors = call.find("tensors");
  RankedTensorType type = call.resultTypes[0];
  if (type.getRank() != 2)
    return refuseDim(emitter, call, 1, type.getRank());
  SmallVector<Value> rows;
  int64_t column = 0;
  for (Value block : tensors ? ArrayRef<Value>(tensors->values) : ArrayRef<Value>()) {
    if (!block)
      return emitter.error("'block_diag' has an absent tensor in its list");
    ArrayRef<int64_t> shape = typeOf(block).getShape();
    int64_t height = shape.size() == 2 ? shape[0] : 1, width = shape.empty() ? 1 : shape.back();
    Value matrix = emitter.cast(emitter.view(block, {height, width}), type.getElementType());
    rows.push_back(emitEmbed(emitter, matrix, {height, type.getDimSize(1)}, 1, column, column + width));
    column += width;
  }
  if (rows.empty())
    return emitter.error("'block_diag' needs a tensor");
  results.push_back(emitCat(emitter, rows, 0));
  return success();
}

void spmd::normalizeDiagonals(NormalizerTable &table) {
  table["diagonal"] = {&emitDiagonal, {"self"}};
  table["diagonal_backward"] = {&emitDiagonalBackward, {"grad_output"}};
  table["diag_embed"] = {&emitDiagonalBackward, {"self"}};
  table["diagonal_scatter"] = {&emitDiagonalScatter, {"self", "src"}};
  table["trace"] = {&emitTrace, {"self"}};
  table["block_diag"] = &emitBlockDiag;
}
