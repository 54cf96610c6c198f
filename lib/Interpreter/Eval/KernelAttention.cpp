//===- KernelAttention.cpp - kernel.attention, kernel.attention_backward --===//
//
// The definition, row by row. The mask is a function of [batch, head, query, key], computed for one row at a time.
//
//===----------------------------------------------------------------------===//

#include "ScalarCode.h"
#include "dialects/Kernel/AccessMap.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::interp {
namespace {

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
  OpCall &call;
  mutable OpTy op;
  kernel::AttentionSizesAttr sizes;
  double scale;
  Heads q, k, v;
  ArrayRef<Tensor> maskInputs;

  /// `operands` from q on.
  Attention(OpCall &call, OpTy op, ArrayRef<Tensor> operands)
      : call(call), op(op), sizes(op.getSizes()), scale(op.getScale().convertToDouble()),
        q{operands[0], op.getQView()}, k{operands[1], op.getKView()}, v{operands[2], op.getVView()},
        maskInputs(operands.slice(3, op.getMaskInputs().size())) {}

  int64_t kvHead(int64_t head) const { return head / (sizes.getHeads() / sizes.getKvHeads()); }

  /// What the mask yields for the keys of one query.
  FailureOr<Lanes> maskRow(int64_t b, int64_t h, int64_t t) const {
    int64_t keys = sizes.getKvLen();
    std::vector<Lanes> arguments;
    for (auto [i, tensor] : llvm::enumerate(maskInputs)) {
      auto map = kernel::AccessMap::get(cast<AffineMapAttr>(op.getMaskMaps()[i]).getValue());
      if (!map.isLinear())
        return call.error() << "has a map that is not linear";
      int64_t first = map.constant + b * map.strides[0] + h * map.strides[1] + t * map.strides[2];
      for (auto [axis, stride] : llvm::enumerate(map.symbols))
        if (stride != 0)
          first += stride * call.context.coordinates[axis];
      Lanes lanes(keys);
      for (int64_t s = 0; s < keys; ++s) {
        int64_t element = first + s * map.strides[3];
        if (element < 0 || element >= tensor.numel())
          return call.error() << "operand " << i << " of the mask is read outside of its " << tensor.numel()
                              << " elements";
        lanes[s] = tensor.at(element);
      }
      arguments.push_back(std::move(lanes));
    }
    ScalarContext context;
    context.index = [&](int64_t dim) {
      if (dim < 3)
        return Lanes{static_cast<double>(dim == 0 ? b : dim == 1 ? h : t)};
      Lanes lanes(keys);
      for (int64_t s = 0; s < keys; ++s)
        lanes[s] = static_cast<double>(s);
      return lanes;
    };
    context.coordinate = [&](int64_t axis) { return static_cast<double>(call.context.coordinates[axis]); };
    FailureOr<std::vector<Lanes>> yielded = runScalarCode(op.getMask().front(), std::move(arguments), context);
    if (failed(yielded))
      return failure();
    Lanes row = std::move(yielded->front());
    row.resize(keys, row.front());
    return row;
  }

  /// Scores of one query, -inf where it may not look.
  FailureOr<std::vector<double>> scores(int64_t b, int64_t h, int64_t t) const {
    Lanes mask;
    bool keeps = false;
    if (!op.getMask().empty()) {
      FailureOr<Lanes> row = maskRow(b, h, t);
      if (failed(row))
        return failure();
      mask = std::move(*row);
      keeps = op.getMask().front().getTerminator()->getOperand(0).getType().isInteger(1);
    }
    std::vector<double> result(sizes.getKvLen());
    for (int64_t s = 0; s < sizes.getKvLen(); ++s) {
      double sum = 0;
      for (int64_t c = 0; c < sizes.getHeadDim(); ++c)
        sum += q.at(b, h, t, c) * k.at(b, kvHead(h), s, c);
      sum *= scale;
      if (keeps)
        sum = mask[s] != 0 ? sum : -std::numeric_limits<double>::infinity();
      else if (!mask.empty())
        sum += mask[s];
      result[s] = sum;
    }
    return result;
  }

  template <typename Fn>
  LogicalResult forEachQuery(Fn visit) const {
    for (int64_t b = 0; b < sizes.getBatch(); ++b)
      for (int64_t h = 0; h < sizes.getHeads(); ++h)
        for (int64_t t = 0; t < sizes.getQLen(); ++t) {
          FailureOr<std::vector<double>> row = scores(b, h, t);
          if (failed(row))
            return failure();
          visit(b, h, t, (b * sizes.getHeads() + h) * sizes.getQLen() + t, *row);
        }
    return success();
  }
};

LogicalResult evaluateAttention(OpCall &call) {
  auto op = cast<kernel::AttentionOp>(call.op);
  Attention<kernel::AttentionOp> a(call, op, call.operands());
  Tensor out = emptyResult(call, 0), lse = emptyResult(call, 1);
  Heads target{out, op.getOutView()};
  LogicalResult done =
      a.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t row, std::vector<double> &scores) {
        double highest = *std::max_element(scores.begin(), scores.end()), sum = 0;
        for (double &score : scores)
          sum += score = highest == -INFINITY ? 0 : std::exp(score - highest);
        lse.set(row, highest + std::log(sum));
        for (int64_t c = 0; c < a.sizes.getVDim(); ++c) {
          double value = 0;
          for (int64_t s = 0; s < a.sizes.getKvLen(); ++s)
            value += scores[s] * a.v.at(b, a.kvHead(h), s, c);
          out.set(target.index(b, h, t, c), sum == 0 ? 0 : value / sum);
        }
      });
  if (failed(done))
    return failure();
  call.result(std::move(out));
  call.result(std::move(lse));
  return success();
}

LogicalResult evaluateAttentionBackward(OpCall &call) {
  auto op = cast<kernel::AttentionBackwardOp>(call.op);
  ArrayRef<Tensor> operands = call.operands();
  Attention<kernel::AttentionBackwardOp> a(call, op, operands.drop_front());
  Heads dout{operands[0], op.getDoutViewAttr()}, out{operands[operands.size() - 2], op.getOutViewAttr()};
  const Tensor &lse = operands.back();
  SmallVector<Tensor> grads;
  for (unsigned i = 0; i < op.getGrads().size(); ++i)
    grads.push_back(emptyResult(call, i));
  bool isPacked = grads.size() == 1;
  Tensor &dqTensor = grads[0], &dkTensor = grads[isPacked ? 0 : 1], &dvTensor = grads[isPacked ? 0 : 2];
  Heads dq{dqTensor, op.getDqViewAttr()}, dk{dkTensor, op.getDkViewAttr()}, dv{dvTensor, op.getDvViewAttr()};
  Tensor maskGrad;
  SmallVector<int64_t> maskShape;
  if (op.getMaskGrad()) {
    maskGrad = emptyResult(call, grads.size());
    maskShape = llvm::to_vector(maskGrad.shape());
  }
  auto add = [](Tensor &tensor, int64_t element, double value) { tensor.set(element, tensor.at(element) + value); };
  LogicalResult done =
      a.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t row, std::vector<double> &scores) {
        double inner = 0;
        for (int64_t c = 0; c < a.sizes.getVDim(); ++c)
          inner += dout.at(b, h, t, c) * out.at(b, h, t, c);
        int64_t kv = a.kvHead(h);
        for (int64_t s = 0; s < a.sizes.getKvLen(); ++s) {
          double probability = lse.at(row) == -INFINITY ? 0 : std::exp(scores[s] - lse.at(row));
          double slope = 0;
          for (int64_t c = 0; c < a.sizes.getVDim(); ++c) {
            slope += dout.at(b, h, t, c) * a.v.at(b, kv, s, c);
            add(dvTensor, dv.index(b, kv, s, c), probability * dout.at(b, h, t, c));
          }
          double dmasked = probability * (slope - inner), dscore = a.scale * dmasked;
          for (int64_t c = 0; c < a.sizes.getHeadDim(); ++c) {
            add(dqTensor, dq.index(b, h, t, c), dscore * a.k.at(b, kv, s, c));
            add(dkTensor, dk.index(b, kv, s, c), dscore * a.q.at(b, h, t, c));
          }
          if (!maskShape.empty()) {
            int64_t plane = (maskShape[0] == 1 ? 0 : b) * maskShape[1] + (maskShape[1] == 1 ? 0 : h);
            add(maskGrad, (plane * a.sizes.getQLen() + t) * a.sizes.getKvLen() + s, dmasked);
          }
        }
      });
  if (failed(done))
    return failure();
  for (Tensor &grad : grads)
    call.result(std::move(grad));
  if (op.getMaskGrad())
    call.result(std::move(maskGrad));
  return success();
}

} // namespace

void registerKernelAttention(EvaluatorRegistry &registry) {
  registry.add("kernel.attention", evaluateAttention);
  registry.add("kernel.attention_backward", evaluateAttentionBackward);
}

} // namespace spmd::interp
