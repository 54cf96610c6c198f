//===- KernelHeavy.cpp - matrix products, attention, rows by number -------===//

#include "dialects/Kernel/Kernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace spmd::interp {
namespace {

Tensor emptyResult(OpCall &call, unsigned i) {
  auto type = cast<RankedTensorType>(call.op->getResult(i).getType());
  return Tensor(*getDType(type.getElementType()), type.getShape());
}

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
// Attention
//===----------------------------------------------------------------------===//

/// [batch, head, row, column] of a flat tensor.
struct Heads {
  const Tensor &tensor;
  kernel::ViewAttr view;

  int64_t index(int64_t b, int64_t h, int64_t t, int64_t c) const {
    return view.getOffset() + b * view.getBatch() + h * view.getHead() + t * view.getRow() + c;
  }
  double at(int64_t b, int64_t h, int64_t t, int64_t c) const { return tensor.at(index(b, h, t, c)); }
};

/// The definition that forward and backward have in common.
template <typename OpTy>
struct Attention {
  kernel::AttentionSizesAttr sizes;
  double scale;
  bool causal;
  Heads q, k, v;
  std::optional<Heads> mask;

  Attention(OpTy op, ArrayRef<Tensor> qkv, const Tensor *maskTensor)
      : sizes(op.getSizes()), scale(op.getScale().convertToDouble()), causal(op.getCausal()),
        q{qkv[0], op.getQViewAttr()}, k{qkv[1], op.getKViewAttr()}, v{qkv[2], op.getVViewAttr()} {
    if (maskTensor)
      mask.emplace(Heads{*maskTensor, op.getMaskViewAttr()});
  }

  int64_t kvHead(int64_t head) const { return head / (sizes.getHeads() / sizes.getKvHeads()); }

  /// Scores of one query, -inf where it may not look.
  std::vector<double> scores(int64_t b, int64_t h, int64_t t) const {
    double never = -std::numeric_limits<double>::infinity();
    std::vector<double> result(sizes.getKvLen());
    for (int64_t s = 0; s < sizes.getKvLen(); ++s) {
      double sum = 0;
      for (int64_t c = 0; c < sizes.getHeadDim(); ++c)
        sum += q.at(b, h, t, c) * k.at(b, kvHead(h), s, c);
      sum *= scale;
      if (mask && mask->tensor.dtype() == DType::i1)
        sum = mask->at(b, h, t, s) != 0 ? sum : never;
      else if (mask)
        sum += mask->at(b, h, t, s);
      result[s] = causal && s > t ? never : sum;
    }
    return result;
  }

  template <typename Fn>
  void forEachQuery(Fn visit) const {
    for (int64_t b = 0; b < sizes.getBatch(); ++b)
      for (int64_t h = 0; h < sizes.getHeads(); ++h)
        for (int64_t t = 0; t < sizes.getQLen(); ++t)
          visit(b, h, t, (b * sizes.getHeads() + h) * sizes.getQLen() + t);
  }
};

LogicalResult evaluateAttention(OpCall &call) {
  auto op = cast<kernel::AttentionOp>(call.op);
  ArrayRef<Tensor> operands = call.operands();
  Attention<kernel::AttentionOp> a(op, operands, op.getMask() ? &operands[3] : nullptr);
  Tensor out = emptyResult(call, 0), lse = emptyResult(call, 1);
  Heads target{out, op.getOutView()};
  a.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t row) {
    std::vector<double> scores = a.scores(b, h, t);
    double highest = *std::max_element(scores.begin(), scores.end()), sum = 0;
    for (double &score : scores)
      sum += score = std::isinf(highest) ? 0 : std::exp(score - highest);
    lse.set(row, highest + std::log(sum));
    for (int64_t c = 0; c < a.sizes.getVDim(); ++c) {
      double value = 0;
      for (int64_t s = 0; s < a.sizes.getKvLen(); ++s)
        value += scores[s] * a.v.at(b, a.kvHead(h), s, c);
      out.set(target.index(b, h, t, c), sum == 0 ? 0 : value / sum);
    }
  });
  call.result(std::move(out));
  call.result(std::move(lse));
  return success();
}

LogicalResult evaluateAttentionBackward(OpCall &call) {
  auto op = cast<kernel::AttentionBackwardOp>(call.op);
  ArrayRef<Tensor> operands = call.operands();
  bool hasMask = static_cast<bool>(op.getMask());
  Attention<kernel::AttentionBackwardOp> a(op, operands.slice(1), hasMask ? &operands[4] : nullptr);
  Heads dout{operands[0], op.getDoutViewAttr()}, out{operands[hasMask ? 5 : 4], op.getOutViewAttr()};
  const Tensor &lse = operands[hasMask ? 6 : 5];
  SmallVector<Tensor> grads;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    grads.push_back(emptyResult(call, i));
  bool isPacked = grads.size() == 1;
  Tensor &dqTensor = grads[0], &dkTensor = grads[isPacked ? 0 : 1], &dvTensor = grads[isPacked ? 0 : 2];
  Heads dq{dqTensor, op.getDqViewAttr()}, dk{dkTensor, op.getDkViewAttr()}, dv{dvTensor, op.getDvViewAttr()};
  auto add = [](Tensor &tensor, int64_t element, double value) { tensor.set(element, tensor.at(element) + value); };
  a.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t row) {
    std::vector<double> scores = a.scores(b, h, t);
    double inner = 0;
    for (int64_t c = 0; c < a.sizes.getVDim(); ++c)
      inner += dout.at(b, h, t, c) * out.at(b, h, t, c);
    int64_t kv = a.kvHead(h);
    for (int64_t s = 0; s < a.sizes.getKvLen(); ++s) {
      double probability = std::isinf(lse.at(row)) ? 0 : std::exp(scores[s] - lse.at(row));
      double slope = 0;
      for (int64_t c = 0; c < a.sizes.getVDim(); ++c) {
        slope += dout.at(b, h, t, c) * a.v.at(b, kv, s, c);
        add(dvTensor, dv.index(b, kv, s, c), probability * dout.at(b, h, t, c));
      }
      double dscore = a.scale * probability * (slope - inner);
      for (int64_t c = 0; c < a.sizes.getHeadDim(); ++c) {
        add(dqTensor, dq.index(b, h, t, c), dscore * a.k.at(b, kv, s, c));
        add(dkTensor, dk.index(b, kv, s, c), dscore * a.q.at(b, h, t, c));
      }
    }
  });
  for (Tensor &grad : grads)
    call.result(std::move(grad));
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
    llvm::stable_sort(order, [&](int64_t a, int64_t b) {
      return op.getDescending() ? isLess(self.at(b), self.at(a)) : isLess(self.at(a), self.at(b));
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
    if ((value < low || value >= high) && op.getIgnoreIndex() != value)
      return call.error() << "element " << i << " is " << value << ", '" << op.getUse() << "' allows [" << low << ", "
                          << high << ")";
  return success();
}

} // namespace

void registerKernelHeavy(EvaluatorRegistry &registry) {
  registry.add("kernel.gemm", evaluateGemm);
  registry.add("kernel.attention", evaluateAttention);
  registry.add("kernel.attention_backward", evaluateAttentionBackward);
  registry.add("kernel.gather_rows", evaluateGatherRows);
  registry.add("kernel.scatter_rows", evaluateScatterRows);
  registry.add("kernel.sort", evaluateSort);
  registry.add("kernel.check_index", evaluateCheckIndex);
}

} // namespace spmd::interp
