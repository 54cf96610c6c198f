//===- NormalizeViews.cpp - Views, copies, pieces -------------------------===//

#include "Normalize.h"

using namespace mlir;
using namespace spmd;

/// Values have no memory of their own, no layout and no autograd history.
static LogicalResult emitIdentity(Emitter &, Call &call, Results &results) {
  results.push_back(call.value("self"));
  return success();
}

static LogicalResult emitCast(Emitter &emitter, Call &call, Results &results) {
  results.push_back(emitter.cast(call.value("self"), call.resultTypes[0].getElementType()));
  return success();
}

/// self.copy_(src): src in the dtype and shape of self.
static LogicalResult emitCopy(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Value value = call.value("src");
  if (!value)
    return emitter.error("'copy' needs a tensor 'src'");
  value = emitter.cast(value, type.getElementType());
  results.push_back(emitter.expand(value, type.getShape()));
  return success();
}

/// Any op whose result has the elements in the same order: the capture's
/// result shape says everything.
static LogicalResult emitView(Emitter &emitter, Call &call, Results &results) {
  results.push_back(emitter.view(call.value("self"), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitExpand(Emitter &emitter, Call &call, Results &results) {
  results.push_back(emitter.expand(call.value("self"), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitPermute(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  int64_t rank = typeOf(self).getRank();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank == 0) {
    // Dimension 0 of a tensor without dimensions is PyTorch's leave to do nothing.
  } else if (call.op == "t") {
    if (rank == 2)
      std::swap(dims[0], dims[1]);
  } else if (call.op == "transpose.int") {
    int64_t a = wrapDim(call.integer("dim0", 0), rank);
    int64_t b = wrapDim(call.integer("dim1", 0), rank);
    if (a < 0 || b < 0 || a >= rank || b >= rank)
      return emitter.error("'transpose.int' names dimensions ") << a << " and " << b << " of a tensor of rank " << rank;
    std::swap(dims[a], dims[b]);
  } else if (BoundArg *arg = call.find("dims")) {
    dims.assign(arg->literal.integers.begin(), arg->literal.integers.end());
    for (int64_t &dim : dims)
      dim = wrapDim(dim, rank);
    SmallVector<int64_t> sorted = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (!std::is_permutation(dims.begin(), dims.end(), sorted.begin(), sorted.end()))
      return emitter.error("'permute' needs each dimension once");
  }
  results.push_back(emitter.permute(self, dims));
  return success();
}

/// start and end as PyTorch reads them: from the end if negative, clamped.
static void clampSlice(Call &call, int64_t dim, int64_t size) {
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  int64_t start = clamp(call.integer("start", 0));
  int64_t end = clamp(call.integer("end", size));
  setInteger(call, "dim", dim);
  setInteger(call, "start", start);
  setInteger(call, "end", std::max(start, end));
}

static LogicalResult emitSlice(Emitter &emitter, Call &call, Results &results) {
  bool backward = call.op == "slice_backward";
  Value self = call.value(backward ? "grad_output" : "self");
  RankedTensorType whole = backward ? call.resultTypes[0] : typeOf(self);
  int64_t dim = wrapDim(call.integer("dim", 0), whole.getRank());
  if (dim < 0 || dim >= whole.getRank())
    return emitter.error("'") << call.op << "' of dimension " << dim;
  clampSlice(call, dim, whole.getDimSize(dim));
  if (backward && typeOf(self).getNumElements() == 0 && whole.getNumElements() != 0) {
    results.push_back(emitter.full(whole, emitter.builder.getF64FloatAttr(0)));
    return success();
  }
  // A slice of everything.
  bool scatter = call.op == "slice_scatter";
  Value piece = scatter ? call.value("src") : self;
  if (call.resultTypes[0].getShape() == whole.getShape() && typeOf(piece).getShape() == whole.getShape()) {
    results.push_back(piece);
    return success();
  }
  return emitSameOp(emitter, call, results);
}

/// A softmax, or its gradient, of a tensor without dimensions: that of one row of one.
static LogicalResult emitOfOneRow(Emitter &emitter, Call &call, Results &results) {
  Call row = call;
  for (BoundArg &arg : row.args)
    for (Value &value : arg.values)
      value = emitter.view(value, {1});
  row.resultTypes[0] = call.resultTypes[0].clone({1});
  setInteger(row, "dim", 0);
  SmallVector<Value> rows;
  if (failed(emitSameOp(emitter, row, rows)))
    return failure();
  results.push_back(emitter.view(rows[0], {}));
  return success();
}

/// Ops with a dimension and perhaps an index into it.
static LogicalResult emitWrapped(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  if (StringRef(call.op).ends_with("softmax") && self && typeOf(self).getRank() == 0)
    return emitOfOneRow(emitter, call, results);
  int64_t rank = self ? typeOf(self).getRank() : call.resultTypes[0].getRank();
  int64_t dim = wrapDim(call.integer("dim", 0), rank);
  if (dim < 0 || dim >= rank)
    return emitter.error("'") << call.op << "' of dimension " << dim;
  setInteger(call, "dim", dim);
  if (BoundArg *index = call.find("index"); index && index->isNumber()) {
    int64_t size = self ? typeOf(self).getDimSize(dim) : call.resultTypes[0].getDimSize(dim);
    setInteger(call, "index", wrapDim(index->literal.integer, size));
  }
  return emitSameOp(emitter, call, results);
}

/// Ops with a dimension of their result.
static LogicalResult emitResultDim(Emitter &emitter, Call &call, Results &results) {
  if (call.resultTypes[0].getRank() == 0)
    return emitOfOneRow(emitter, call, results);
  setInteger(call, "dim", wrapDim(call.integer("dim", 0), call.resultTypes[0].getRank()));
  return emitSameOp(emitter, call, results);
}

static LogicalResult emitUnbind(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  int64_t dim = wrapDim(call.integer("dim", 0), typeOf(self).getRank());
  for (auto [index, type] : llvm::enumerate(call.resultTypes))
    results.push_back(emitter.createValue("select.int", self,
                                          {emitter.named("dim", emitter.builder.getI64IntegerAttr(dim)),
                                           emitter.named("index", emitter.builder.getI64IntegerAttr(index))},
                                          type));
  return success();
}

static LogicalResult emitCat(Emitter &emitter, Call &call, Results &results) {
  BoundArg *tensors = call.find("tensors");
  int64_t rank = call.resultTypes[0].getRank();
  // Nothing adds nothing: caches that start empty, the part of a head that is not rotated when all of it is. What has no
  // elements either way keeps its shape, which PyTorch does not ask of a tensor of shape [0].
  if (tensors && call.op == "cat") {
    bool hasElements = call.resultTypes[0].getNumElements() != 0;
    llvm::erase_if(tensors->values, [&](Value value) {
      return value && typeOf(value).getNumElements() == 0 && (hasElements || typeOf(value).getRank() != rank);
    });
    // Operands of several types have the result's, as PyTorch promotes them.
    for (Value &value : tensors->values)
      if (value)
        value = emitter.cast(value, call.resultTypes[0].getElementType());
  }
  setInteger(call, "dim", wrapDim(call.integer("dim", 0), rank));
  if (tensors && call.op == "cat" && tensors->values.size() == 1) {
    results.push_back(tensors->values[0]);
    return success();
  }
  return emitSameOp(emitter, call, results);
}

void spmd::normalizeViews(NormalizerTable &table) {
  for (StringRef op : {"detach", "alias", "clone", "contiguous", "lift_fresh", "lift_fresh_copy"})
    table[op] = {&emitIdentity, {"self"}};
  for (StringRef op : {"_to_copy", "_local_scalar_dense"})
    table[op] = {&emitCast, {"self"}};
  table["copy"] = {&emitCopy, {"src"}};
  for (StringRef op :
       {"view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims"})
    table[op] = {&emitView, {"self"}};
  table["expand"] = {&emitExpand, {"self"}};
  for (StringRef op : {"t", "transpose.int", "permute"})
    table[op] = {&emitPermute, {"self"}};
  table["slice.Tensor"] = {&emitSlice, {"self"}};
  table["slice_backward"] = {&emitSlice, {"grad_output"}};
  table["slice_scatter"] = {&emitSlice, {"self", "src"}};
  for (StringRef op : {"select.int", "select_backward", "select_scatter", "split.Tensor", "split_with_sizes",
                       "_softmax", "_log_softmax"})
    table[op] = &emitWrapped;
  for (StringRef op : {"_softmax_backward_data", "_log_softmax_backward_data"})
    table[op] = &emitResultDim;
  table["unbind.int"] = {&emitUnbind, {"self"}};
  for (StringRef op : {"cat", "stack"})
    table[op] = &emitCat;
}
