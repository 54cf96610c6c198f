//===- Slices.cpp - pieces of tensors and their gradients -----------------===//
//
// Everything here reads or writes one strided box of a dimension.
//===----------------------------------------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <algorithm>

using namespace mlir;

namespace spmd::interp {

/// Rows start, start + step, … (`count` of them) of one dimension.
struct Rows {
  int64_t dim, start, count, step = 1;
};

static Shape withRows(ShapeRef shape, const Rows &rows) {
  Shape result(shape);
  result[rows.dim] = rows.count;
  return result;
}

static Tensor readRows(const Tensor &self, const Rows &rows) {
  Shape strides = contiguousStrides(self.shape());
  int64_t offset = rows.start * strides[rows.dim];
  strides[rows.dim] *= rows.step;
  return gatherStrided(self, withRows(self.shape(), rows), strides, offset);
}

/// A copy of `self` with `source` in the rows.
static Tensor writeRows(const Tensor &self, const Tensor &source, const Rows &rows) {
  Tensor result = gatherStrided(self, self.shape(), contiguousStrides(self.shape()));
  Shape strides = contiguousStrides(self.shape());
  int64_t offset = rows.start * strides[rows.dim];
  strides[rows.dim] *= rows.step;
  scatterStrided(result, source, strides, offset);
  return result;
}

static Rows sliceRows(const OpCall &call) {
  int64_t start = call.integer("start"), step = call.integer("step");
  return {call.integer("dim"), start, (call.integer("end") - start + step - 1) / step, step};
}

static Rows selectRows(const OpCall &call) { return {call.integer("dim"), call.integer("index"), 1}; }

static Shape dropDim(ShapeRef shape, int64_t dim) {
  Shape result(shape);
  result.erase(result.begin() + dim);
  return result;
}

static LogicalResult checkRows(OpCall &call, ShapeRef shape, const Rows &rows) {
  int64_t last = rows.start + (rows.count - 1) * rows.step;
  if (rows.start < 0 || (rows.count > 0 && last >= shape[rows.dim]))
    return call.error() << "row " << last << " of dimension " << rows.dim << ", which has " << shape[rows.dim];
  return success();
}

static LogicalResult checkSource(OpCall &call, const Tensor &source, ShapeRef shape, const Rows &rows) {
  if (source.shape() != ShapeRef(withRows(shape, rows)))
    return call.error() << "the source does not have the shape of the rows";
  return checkRows(call, shape, rows);
}

static LogicalResult evaluateSlice(OpCall &call) {
  const Tensor &self = call.tensor("self");
  call.result(readRows(self, sliceRows(call)));
  return success();
}

static LogicalResult evaluateSelect(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Rows rows = selectRows(call);
  if (failed(checkRows(call, self.shape(), rows)))
    return failure();
  call.result(readRows(self, rows).reshaped(dropDim(self.shape(), rows.dim)));
  return success();
}

static LogicalResult splitInto(OpCall &call, ArrayRef<int64_t> sizes) {
  const Tensor &self = call.tensor("self");
  Rows rows{call.integer("dim"), 0, 0};
  for (int64_t size : sizes) {
    rows.count = size;
    if (failed(checkRows(call, self.shape(), rows)))
      return failure();
    call.result(readRows(self, rows));
    rows.start += size;
  }
  return success();
}

static LogicalResult evaluateSplit(OpCall &call) {
  const Tensor &self = call.tensor("self");
  int64_t total = self.dim(call.integer("dim"));
  int64_t piece = call.integer("split_size");
  Shape sizes;
  for (int64_t begin = 0; begin < total; begin += piece)
    sizes.push_back(std::min(piece, total - begin));
  return splitInto(call, sizes);
}

/// Concatenates along an existing dimension; the operands agree elsewhere.
static LogicalResult concatenate(OpCall &call, ArrayRef<Tensor> tensors, int64_t dim) {
  Shape shape(tensors.front().shape());
  shape[dim] = 0;
  for (const Tensor &tensor : tensors) {
    for (int64_t d = 0, e = shape.size(); d < e; ++d)
      if (d != dim && tensor.dim(d) != shape[d])
        return call.error() << "operands disagree in dimension " << d;
    shape[dim] += tensor.dim(dim);
  }
  Tensor result(call.resultType(), shape);
  Shape strides = contiguousStrides(shape);
  int64_t start = 0;
  for (const Tensor &tensor : tensors) {
    scatterStrided(result, tensor.converted(call.resultType()), strides, start * strides[dim]);
    start += tensor.dim(dim);
  }
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateCat(OpCall &call) {
  // PyTorch skips empty one-dimensional operands whatever the others' rank.
  SmallVector<Tensor> tensors;
  for (const Tensor &tensor : call.tensors("tensors"))
    if (tensor.rank() != 1 || tensor.dim(0) != 0)
      tensors.push_back(tensor);
  if (tensors.empty()) {
    call.result(Tensor(call.resultType(), {0}));
    return success();
  }
  return concatenate(call, tensors, call.integer("dim"));
}

static LogicalResult evaluateStack(OpCall &call) {
  int64_t dim = call.integer("dim");
  SmallVector<Tensor> rows;
  for (const Tensor &tensor : call.tensors("tensors")) {
    Shape shape(tensor.shape());
    shape.insert(shape.begin() + dim, 1);
    rows.push_back(tensor.reshaped(shape));
  }
  return concatenate(call, rows, dim);
}

static LogicalResult evaluateSliceBackward(OpCall &call) {
  ShapeRef shape = call.integers("input_sizes");
  Rows rows = sliceRows(call);
  const Tensor &grad = call.tensor("grad_output");
  if (failed(checkSource(call, grad, shape, rows)))
    return failure();
  call.result(writeRows(Tensor(grad.dtype(), shape), grad, rows));
  return success();
}

static LogicalResult evaluateSelectBackward(OpCall &call) {
  ShapeRef shape = call.integers("input_sizes");
  Rows rows = selectRows(call);
  const Tensor &grad = call.tensor("grad_output");
  if (grad.shape() != ShapeRef(dropDim(shape, rows.dim)))
    return call.error() << "the gradient does not have the shape of a row";
  if (failed(checkRows(call, shape, rows)))
    return failure();
  call.result(writeRows(Tensor(grad.dtype(), shape), grad.reshaped(withRows(shape, rows)), rows));
  return success();
}

static LogicalResult evaluateSliceScatter(OpCall &call) {
  const Tensor &self = call.tensor("self"), &source = call.tensor("src");
  Rows rows = sliceRows(call);
  if (failed(checkSource(call, source, self.shape(), rows)))
    return failure();
  call.result(writeRows(self, source, rows));
  return success();
}

static LogicalResult evaluateSelectScatter(OpCall &call) {
  const Tensor &self = call.tensor("self"), &source = call.tensor("src");
  Rows rows = selectRows(call);
  if (source.shape() != ShapeRef(dropDim(self.shape(), rows.dim)))
    return call.error() << "the source does not have the shape of a row";
  if (failed(checkRows(call, self.shape(), rows)))
    return failure();
  call.result(writeRows(self, source.reshaped(withRows(self.shape(), rows)), rows));
  return success();
}

void registerSlices(EvaluatorRegistry &r) {
  r.add("aten.slice.Tensor", evaluateSlice);
  r.add("aten.select.int", evaluateSelect);
  r.add("aten.split.Tensor", evaluateSplit);
  r.add("aten.split_with_sizes", [](OpCall &call) { return splitInto(call, call.integers("split_sizes")); });
  r.add("aten.cat", evaluateCat);
  r.add("aten.stack", evaluateStack);
  r.add("aten.slice_backward", evaluateSliceBackward);
  r.add("aten.select_backward", evaluateSelectBackward);
  r.add("aten.slice_scatter", evaluateSliceScatter);
  r.add("aten.select_scatter", evaluateSelectScatter);
}

} // namespace spmd::interp
