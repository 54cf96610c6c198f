//===- KernelHeavy.cpp - matrix products, rows by number ------------------===//

#include "dialects/Kernel/Kernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::interp {
namespace {

LogicalResult evaluateGemm(OpCall &call) {
  auto op = cast<kernel::GemmOp>(call.op);
  const Tensor &a = call.operands()[0], &b = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  int64_t lda = op.getLda(), ldb = op.getLdb();
  for (int64_t i = 0; i < static_cast<int64_t>(op.getBatch()); ++i) {
    int64_t aStart = op.getAOffset() + i * op.getAStride(), bStart = op.getBOffset() + i * op.getBStride();
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        int64_t element = (i * m + row) * n + column;
        double sum = op.getC() ? call.operands()[2].at(element) : 0;
        for (int64_t inner = 0; inner < k; ++inner)
          sum += a.at(aStart + (op.getTransA() ? inner * lda + row : row * lda + inner)) *
                 b.at(bStart + (op.getTransB() ? column * ldb + inner : inner * ldb + column));
        result.set(element, sum);
      }
  }
  call.result(std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Rows by number
//===----------------------------------------------------------------------===//

LogicalResult evaluateGatherRows(OpCall &call) {
  const Tensor &table = call.operands()[0], &ids = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  int64_t rows = table.dim(0), size = table.numel() / rows;
  for (int64_t i = 0; i < ids.numel(); ++i) {
    int64_t id = ids.integers()[i];
    for (int64_t c = 0; c < size; ++c)
      result.set(i * size + c, id >= 0 && id < rows ? table.at(id * size + c) : 0);
  }
  call.result(std::move(result));
  return success();
}

LogicalResult evaluateScatterAddRows(OpCall &call) {
  auto op = cast<kernel::ScatterAddRowsOp>(call.op);
  const Tensor &grad = call.operands()[0], &ids = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  int64_t rows = op.getRows(), size = result.numel() / rows;
  if (op.getInto())
    for (int64_t i = 0; i < result.numel(); ++i)
      result.set(i, call.operands()[2].at(i));
  for (int64_t i = 0; i < ids.numel(); ++i) {
    int64_t id = ids.integers()[i];
    if (id < 0 || id >= rows || id == static_cast<int64_t>(op.getPaddingIdx()))
      continue;
    for (int64_t c = 0; c < size; ++c)
      result.set(id * size + c, result.at(id * size + c) + grad.at(i * size + c));
  }
  call.result(std::move(result));
  return success();
}

} // namespace

void registerKernelHeavy(EvaluatorRegistry &registry) {
  registry.add("kernel.gemm", evaluateGemm);
  registry.add("kernel.gather_rows", evaluateGatherRows);
  registry.add("kernel.scatter_add_rows", evaluateScatterAddRows);
}

} // namespace spmd::interp
