//===- KernelHeavy.cpp - matrix products, rows by number ------------------===//

#include "dialects/Kernel/Kernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace spmd::interp {
namespace {

double applyActivation(kernel::Activation activation, double x) {
  switch (activation) {
  case kernel::Activation::Relu:
    return std::isnan(x) || x > 0 ? x : 0;
  case kernel::Activation::Gelu:
    return 0.5 * x * std::erfc(-x * M_SQRT1_2);
  case kernel::Activation::GeluTanh:
    return x / (1 + std::exp(-2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
  case kernel::Activation::GeluTanhBackward:
    break;
  }
  llvm_unreachable("all activations of one number are handled");
}

/// d/dx x (1 + tanh u) / 2 where u = sqrt(2 / pi) (x + 0.044715 x^3)
double differentiateGeluTanh(double x) {
  double scale = M_2_SQRTPI * M_SQRT1_2, tanh = std::tanh(scale * (x + 0.044715 * x * x * x));
  double slope = x * (1 - tanh * tanh) * scale * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + tanh + (tanh * tanh == 1 ? 0 : slope));
}

LogicalResult evaluateGemm(OpCall &call) {
  auto op = cast<kernel::GemmOp>(call.op);
  const Tensor &a = call.operands()[0], &b = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  std::optional<Tensor> preActivation;
  if (op.getPreActivation())
    preActivation = emptyResult(call, 1);
  int64_t m = op.getM(), n = op.getN(), k = op.getK(), ldc = op.getResultLd();
  if (ldc > n) { // nobody reads between rows
    fillUnwritten(result);
    if (preActivation)
      fillUnwritten(*preActivation);
  }
  int64_t lda = op.getLda(), ldb = op.getLdb();
  for (int64_t i = 0; i < static_cast<int64_t>(op.getBatch()); ++i) {
    int64_t aStart = op.getAOffset() + i * op.getAStride(), bStart = op.getBOffset() + i * op.getBStride();
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        int64_t element = (i * m + row) * ldc + column;
        double sum = 0;
        for (int64_t inner = 0; inner < k; ++inner)
          sum += a.at(aStart + (op.getTransA() ? inner * lda + row : row * lda + inner)) *
                 b.at(bStart + (op.getTransB() ? column * ldb + inner : inner * ldb + column));
        if (op.getBias())
          sum += call.operands()[op.getResidual() ? 3 : 2].at(column);
        if (op.getResidual())
          sum += call.operands()[2].at(element);
        if (preActivation)
          preActivation->set(element, sum);
        if (op.isGeluTanhBackward())
          sum *= differentiateGeluTanh(call.operands().back().at(element));
        else if (op.getActivation())
          sum = applyActivation(*op.getActivation(), sum);
        result.set(element, sum);
      }
  }
  std::optional<Tensor> sums;
  if (op.getBiasGradient()) {
    sums = emptyResult(call, 1);
    auto sumUp = [&](const Tensor &matrix, int64_t count, int64_t terms, int64_t start, int64_t ld, bool isByRow) {
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int64_t inner = 0; inner < terms; ++inner) // what is summed lies in a column if it is by row
          sum += matrix.at(start + (isByRow ? inner * ld + i : i * ld + inner));
        sums->set(i, sum);
      }
    };
    switch (*op.getBiasGradientOf()) {
    case kernel::GemmOperand::A:
      sumUp(a, m, k, op.getAOffset(), lda, op.getTransA());
      break;
    case kernel::GemmOperand::B:
      sumUp(b, n, k, op.getBOffset(), ldb, !op.getTransB());
      break;
    case kernel::GemmOperand::C:
      sumUp(result, n, m, 0, ldc, true);
      break;
    }
  }
  call.result(std::move(result));
  if (preActivation)
    call.result(std::move(*preActivation));
  if (sums)
    call.result(std::move(*sums));
  return success();
}

LogicalResult evaluateGroupedGemm(OpCall &call) {
  auto op = cast<kernel::GroupedGemmOp>(call.op);
  const Tensor &a = call.operands()[0], &b = call.operands()[1], &groups = call.operands()[2];
  Tensor result = emptyResult(call, 0);
  int64_t n = op.getN(), k = op.getK(), ld = op.getLdb(), count = op.getNumGroups();
  for (int64_t row = 0; row < static_cast<int64_t>(op.getM()); ++row) {
    int64_t group = groups.integers()[row];
    int64_t start = op.getBOffset() + group * op.getBStride();
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0;
      if (group >= 0 && group < count)
        for (int64_t inner = 0; inner < k; ++inner)
          sum += a.at(row * k + inner) * b.at(start + (op.getTransB() ? column * ld + inner : inner * ld + column));
      result.set(row * n + column, sum);
    }
  }
  call.result(std::move(result));
  return success();
}

LogicalResult evaluateGroupedOuter(OpCall &call) {
  auto op = cast<kernel::GroupedOuterOp>(call.op);
  const Tensor &a = call.operands()[0], &b = call.operands()[1], &groups = call.operands()[2];
  Tensor result = emptyResult(call, 0);
  int64_t m = op.getM(), n = op.getN();
  for (int64_t group = 0; group < static_cast<int64_t>(op.getNumGroups()); ++group)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (int64_t row = 0; row < groups.numel(); ++row)
          if (groups.integers()[row] == group)
            sum += a.at(row * m + i) * b.at(row * n + column);
        result.set((group * m + i) * n + column, sum);
      }
  call.result(std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Rows by number
//===----------------------------------------------------------------------===//

LogicalResult evaluateGatherRows(OpCall &call) {
  auto op = cast<kernel::GatherRowsOp>(call.op);
  const Tensor &table = call.operands()[0], &ids = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  int64_t rows = op.getNumRows(), size = op.getRowSize(), perTable = ids.numel() / static_cast<int64_t>(op.getBatch());
  for (int64_t i = 0; i < ids.numel(); ++i) {
    int64_t id = ids.integers()[i], first = i / perTable * rows;
    for (int64_t c = 0; c < size; ++c)
      result.set(i * size + c, id >= 0 && id < rows ? table.at((first + id) * size + c) : 0);
  }
  call.result(std::move(result));
  return success();
}

double combineScattered(kernel::ScatterKind kind, double old, double value) {
  switch (kind) {
  case kernel::ScatterKind::Set:
    return value;
  case kernel::ScatterKind::Add:
    return old + value;
  case kernel::ScatterKind::Mul:
    return old * value;
  case kernel::ScatterKind::Max:
    return std::isnan(old) || old > value ? old : value;
  case kernel::ScatterKind::Min:
    return std::isnan(old) || old < value ? old : value;
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult evaluateScatterRows(OpCall &call) {
  auto op = cast<kernel::ScatterRowsOp>(call.op);
  const Tensor &src = call.operands()[0], &ids = call.operands()[1];
  Tensor result = emptyResult(call, 0);
  int64_t rows = op.getRows(), size = op.getRowSize(), perTable = ids.numel() / static_cast<int64_t>(op.getBatch());
  if (op.getInto())
    for (int64_t i = 0; i < result.numel(); ++i)
      result.set(i, call.operands()[2].at(i));
  for (int64_t i = 0; i < ids.numel(); ++i) {
    int64_t id = ids.integers()[i], first = i / perTable * rows;
    if (id < 0 || id >= rows || id == static_cast<int64_t>(op.getPaddingIdx()))
      continue;
    for (int64_t c = 0; c < size; ++c) {
      int64_t to = (first + id) * size + c;
      result.set(to, combineScattered(op.getKind(), result.at(to), src.at(i * size + c)));
    }
  }
  call.result(std::move(result));
  return success();
}

LogicalResult evaluateSort(OpCall &call) {
  auto op = cast<kernel::SortOp>(call.op);
  const Tensor &self = call.operands()[0];
  Tensor values = emptyResult(call, 0), indices = emptyResult(call, 1);
  int64_t size = op.getSize();
  auto isLess = [](double x, double y) { return x < y || (std::isnan(y) && !std::isnan(x)); };
  std::vector<int64_t> order(size);
  for (int64_t first = 0; first < self.numel(); first += size) {
    std::iota(order.begin(), order.end(), first);
    // Equal elements stay in order.
    llvm::sort(order, [&](int64_t a, int64_t b) {
      double x = self.at(op.getDescending() ? b : a), y = self.at(op.getDescending() ? a : b);
      return isLess(x, y) || (!isLess(y, x) && a < b);
    });
    for (int64_t i = 0; i < size; ++i) {
      values.set(first + i, self.at(order[i]));
      indices.set(first + i, order[i] - first);
    }
  }
  call.result(std::move(values));
  call.result(std::move(indices));
  return success();
}

LogicalResult evaluateCheckIndex(OpCall &call) {
  auto op = cast<kernel::CheckIndexOp>(call.op);
  int64_t low = op.getLow(), high = op.getHigh();
  for (auto [i, value] : llvm::enumerate(call.operands()[0].integers()))
    if (value && call.operands()[0].dtype() == DType::i1)
      return call.error() << op.getUse() << " at element " << i;
    else if ((value < low || value >= high) && op.getIgnoreIndex() != value)
      return call.error() << "element " << i << " is " << value << ", '" << op.getUse() << "' allows [" << low << ", "
                          << high << ")";
  return success();
}

} // namespace

void registerKernelHeavy(EvaluatorRegistry &registry) {
  registry.add("kernel.gemm", evaluateGemm);
  registry.add("kernel.grouped_gemm", evaluateGroupedGemm);
  registry.add("kernel.grouped_outer", evaluateGroupedOuter);
  registry.add("kernel.gather_rows", evaluateGatherRows);
  registry.add("kernel.scatter_rows", evaluateScatterRows);
  registry.add("kernel.sort", evaluateSort);
  registry.add("kernel.check_index", evaluateCheckIndex);
}

} // namespace spmd::interp
