//===- Indexing.cpp - rows by number --------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"

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

static LogicalResult evaluateIndexSelect(OpCall &call) {
  const Tensor &self = call.tensor("self"), &index = call.tensor("index");
  int64_t dim = call.integer("dim"), inner = 1, outer = 1;
  for (int64_t d = 0; d < self.rank(); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : self.dim(d);
  Shape shape(self.shape());
  shape[dim] = index.numel();
  Tensor result(self.dtype(), shape);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < shape[dim]; ++i) {
      int64_t row = index.integers()[i];
      if (failed(checkIndex(call, row, self.dim(dim))))
        return failure();
      for (int64_t j = 0; j < inner; ++j)
        result.set((o * shape[dim] + i) * inner + j, self.at((o * self.dim(dim) + row) * inner + j));
    }
  call.result(std::move(result));
  return success();
}

void registerIndexing(EvaluatorRegistry &r) {
  r.add("aten.embedding", evaluateEmbedding);
  r.add("aten.embedding_dense_backward", evaluateEmbeddingBackward);
  r.add("aten.index_select", evaluateIndexSelect);
}

} // namespace spmd::interp
