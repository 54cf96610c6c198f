//===- Indexing.cpp - rows by number --------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

static LogicalResult checkIndex(OpCall &call, int64_t index, int64_t size) {
  if (index >= 0 && index < size)
    return success();
  return call.error() << "row number " << index << " is not in [0, " << size << ")";
}

static LogicalResult evaluateEmbedding(OpCall &call) {
  const Tensor &weight = call.tensor("weight"), &indices = call.tensor("indices");
  if (!weight.isFloating())
    return call.error() << "tables of integers are not supported";
  int64_t width = weight.dim(1);
  Shape shape(indices.shape());
  shape.push_back(width);
  Tensor result(weight.dtype(), shape);
  for (int64_t i = 0, e = indices.numel(); i < e; ++i) {
    int64_t row = indices.integers()[i];
    if (failed(checkIndex(call, row, weight.dim(0))))
      return failure();
    std::copy_n(weight.reals().data() + row * width, width, result.realData() + i * width);
  }
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateEmbeddingBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_output"), &indices = call.tensor("indices");
  if (call.flag("scale_grad_by_freq"))
    return call.error() << "scale_grad_by_freq is not supported";
  int64_t rows = call.integer("num_weights"), width = grad.shape().back();
  int64_t padding = call.integer("padding_idx");
  Tensor result(grad.dtype(), {rows, width});
  for (int64_t i = 0, e = indices.numel(); i < e; ++i) {
    int64_t row = indices.integers()[i];
    if (row == padding)
      continue;
    if (failed(checkIndex(call, row, rows)))
      return failure();
    for (int64_t j = 0; j < width; ++j)
      result.realData()[row * width + j] += grad.reals()[i * width + j];
  }
  call.result(std::move(result));
  return success();
}

/// Batches, row numbers of each, and elements of a row.
struct RowSizes {
  int64_t batch = 1, indices = 1, inner = 1;

  RowSizes(const OpCall &call, const Tensor &index, ShapeRef table) {
    int64_t batchDims = call.integer("batch_dims");
    batch = numElements(table.take_front(batchDims));
    indices = numElements(index.shape().drop_front(batchDims));
    inner = numElements(table.drop_front(batchDims + 1));
  }
};

/// Batch and index dimensions, then those of a row.
static Shape rowsShape(const OpCall &call, const Tensor &index, ShapeRef table) {
  Shape shape(index.shape());
  llvm::append_range(shape, table.drop_front(call.integer("batch_dims") + 1));
  return shape;
}

static LogicalResult evaluateGatherRows(OpCall &call) {
  const Tensor &self = call.tensor("self"), &index = call.tensor("index");
  int64_t rows = self.dim(call.integer("batch_dims"));
  RowSizes sizes(call, index, self.shape());
  Tensor result(self.dtype(), rowsShape(call, index, self.shape()));
  for (int64_t b = 0, to = 0; b < sizes.batch; ++b)
    for (int64_t i = 0; i < sizes.indices; ++i) {
      int64_t row = index.integers()[b * sizes.indices + i];
      if (failed(checkIndex(call, row, rows)))
        return failure();
      for (int64_t j = 0; j < sizes.inner; ++j, ++to)
        result.copyElement(to, self, (b * rows + row) * sizes.inner + j);
    }
  call.result(std::move(result));
  return success();
}

static double reduceElements(llvm::StringRef kind, double a, double b) {
  if (kind == "sum")
    return a + b;
  if (kind == "prod")
    return a * b;
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return kind == "amax" ? std::max(a, b) : std::min(a, b);
}

static LogicalResult evaluateScatterRows(OpCall &call) {
  const Tensor &self = call.tensor("self"), &index = call.tensor("index"), &src = call.tensor("src");
  int64_t rows = call.integer("rows"), batchDims = call.integer("batch_dims"), indexRank = index.rank();
  Shape shape(src.shape().take_front(batchDims));
  shape.push_back(rows);
  llvm::append_range(shape, src.shape().drop_front(indexRank));
  RowSizes sizes(call, index, shape);
  Tensor result(src.dtype(), shape);
  if (self)
    for (int64_t i = 0, e = result.numel(); i < e; ++i)
      result.copyElement(i, self, i);
  llvm::StringRef kind = call.string("reduce");
  for (int64_t b = 0, from = 0; b < sizes.batch; ++b)
    for (int64_t i = 0; i < sizes.indices; ++i) {
      int64_t row = index.integers()[b * sizes.indices + i];
      if (failed(checkIndex(call, row, rows)))
        return failure();
      for (int64_t j = 0; j < sizes.inner; ++j, ++from) {
        int64_t to = (b * rows + row) * sizes.inner + j;
        if (kind == "set")
          result.copyElement(to, src, from);
        else
          result.set(to, reduceElements(kind, result.at(to), src.at(from)));
      }
    }
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateCheckIndex(OpCall &call) {
  const Tensor &self = call.tensor("self");
  int64_t low = call.integer("low"), high = call.integer("high");
  bool hasIgnored = call.has("ignore_index");
  for (auto [i, value] : llvm::enumerate(self.integers()))
    if (value && self.dtype() == DType::i1)
      return call.error() << call.string("use") << " at element " << i;
    else if ((value < low || value >= high) && !(hasIgnored && value == call.integer("ignore_index")))
      return call.error() << "element " << i << " is " << value << ", '" << call.string("use") << "' allows [" << low
                          << ", " << high << ")";
  call.result(self);
  return success();
}

void registerIndexing(EvaluatorRegistry &r) {
  r.add("aten.embedding", evaluateEmbedding);
  r.add("aten.embedding_dense_backward", evaluateEmbeddingBackward);
  r.add("aten.gather_rows", evaluateGatherRows);
  r.add("aten.scatter_rows", evaluateScatterRows);
  r.add("aten.check_index", evaluateCheckIndex);
}

} // namespace spmd::interp
