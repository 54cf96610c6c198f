//===- Attention.cpp - scaled dot product attention -----------------------===//
//
// The definition, row by row, with all scores of a head in memory. Causal means
// column <= row; a boolean mask keeps where it is true, any other is added. A row
// that may attend to nothing has output 0 and logsumexp -inf.
//===----------------------------------------------------------------------===//

#include "MatmulKernel.h"
#include "spmd/Interpreter/Evaluator.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace spmd::interp {
namespace {

/// Sizes and options common to forward and backward.
struct Attention {
  int64_t batch, heads, kvHeads, queries, keys, width, valueWidth;
  double scale;
  bool causal;
  Tensor mask; // broadcast to [batch, heads, queries, keys], or absent

  int64_t kvHead(int64_t head) const { return head / (heads / kvHeads); }
};

FailureOr<Attention> attentionOf(OpCall &call) {
  const Tensor &q = call.tensor("query"), &k = call.tensor("key"), &v = call.tensor("value"),
               &mask = call.tensor("attn_mask");
  if (call.number("dropout_p", 0) != 0)
    return call.error() << "attention dropout is not supported";
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return call.error() << "query, key and value must have four dimensions";
  Attention a{q.dim(0), q.dim(1), k.dim(1), q.dim(2), k.dim(2), q.dim(3), v.dim(3), 0, call.flag("is_causal"), {}};
  if (k.dim(0) != a.batch || v.dim(0) != a.batch || v.dim(1) != a.kvHeads || v.dim(2) != a.keys ||
      k.dim(3) != a.width || a.heads % a.kvHeads != 0 || (a.heads != a.kvHeads && !call.flag("enable_gqa")))
    return call.error() << "the shapes of query, key and value do not fit";
  a.scale = call.has("scale") ? call.number("scale") : 1 / std::sqrt(static_cast<double>(a.width));
  if (mask) {
    Shape full = {a.batch, a.heads, a.queries, a.keys};
    if (broadcastShapes(mask.shape(), full) != full)
      return call.error() << "the mask does not broadcast to the scores";
    a.mask = broadcastTo(mask, full);
  }
  return a;
}

std::vector<double> transposed(const double *x, int64_t rows, int64_t columns) {
  std::vector<double> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[j * rows + i] = x[i * columns + j];
  return result;
}

/// Scores of one head: q k^T * scale + mask, -inf where nothing may be seen.
std::vector<double> scoresOf(const Attention &a, int64_t b, int64_t h, const double *q, const double *k) {
  std::vector<double> kt = transposed(k, a.keys, a.width);
  std::vector<double> scores(a.queries * a.keys);
  multiplyAdd(q, kt.data(), scores.data(), a.queries, a.keys, a.width);
  int64_t base = (b * a.heads + h) * a.queries * a.keys;
  for (int64_t i = 0; i < a.queries; ++i)
    for (int64_t j = 0; j < a.keys; ++j) {
      double &s = scores[i * a.keys + j];
      s *= a.scale;
      if (a.causal && j > i)
        s = -INFINITY;
      else if (a.mask && a.mask.dtype() == DType::i1)
        s = a.mask.at(base + i * a.keys + j) != 0 ? s : -INFINITY;
      else if (a.mask)
        s += a.mask.at(base + i * a.keys + j);
    }
  return scores;
}

LogicalResult evaluateForward(OpCall &call) {
  FailureOr<Attention> shape = attentionOf(call);
  if (failed(shape))
    return failure();
  const Attention &a = *shape;
  const Tensor &q = call.tensor("query"), &k = call.tensor("key"), &v = call.tensor("value");
  Tensor out(call.resultType(0), {a.batch, a.heads, a.queries, a.valueWidth});
  Tensor lse(call.resultType(1), {a.batch, a.heads, a.queries});
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h) {
      int64_t head = b * a.heads + h, kv = b * a.kvHeads + a.kvHead(h);
      std::vector<double> p =
          scoresOf(a, b, h, q.reals().data() + head * a.queries * a.width, k.reals().data() + kv * a.keys * a.width);
      for (int64_t i = 0; i < a.queries; ++i) {
        double *row = p.data() + i * a.keys;
        double largest = *std::max_element(row, row + a.keys);
        long double sum = 0;
        for (int64_t j = 0; j < a.keys; ++j)
          sum += row[j] = largest == -INFINITY ? 0 : std::exp(row[j] - largest);
        for (int64_t j = 0; sum != 0 && j < a.keys; ++j)
          row[j] /= static_cast<double>(sum);
        lse.set(head * a.queries + i, sum == 0 ? -INFINITY : largest + std::log(static_cast<double>(sum)));
      }
      multiplyAdd(p.data(), v.reals().data() + kv * a.keys * a.valueWidth,
                  out.realData() + head * a.queries * a.valueWidth, a.queries, a.valueWidth, a.keys);
    }
  call.result(std::move(out));
  call.result(std::move(lse));
  return success();
}

/// Sums `grad` over the dims that `shape` broadcasts.
Tensor sumTo(const Tensor &grad, ShapeRef shape) {
  Tensor result(grad.dtype(), shape);
  Shape padded(grad.rank() - shape.size(), 1);
  padded.append(shape.begin(), shape.end());
  Shape from = contiguousStrides(grad.shape()), to = contiguousStrides(padded);
  for (int64_t i = 0, e = grad.numel(); i < e; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < grad.rank(); ++d)
      if (padded[d] != 1)
        at += i / from[d] % grad.dim(d) * to[d];
    result.realData()[at] += grad.reals()[i];
  }
  return result;
}

LogicalResult evaluateBackward(OpCall &call) {
  FailureOr<Attention> shape = attentionOf(call);
  if (failed(shape))
    return failure();
  const Attention &a = *shape;
  const Tensor &grad = call.tensor("grad_out"), &q = call.tensor("query"), &k = call.tensor("key"),
               &v = call.tensor("value"), &out = call.tensor("out"), &lse = call.tensor("logsumexp");
  Tensor gradQ(q.dtype(), q.shape()), gradK(k.dtype(), k.shape()), gradV(v.dtype(), v.shape());
  bool wantsMask = call.op->getNumResults() == 4;
  Tensor gradMask;
  if (wantsMask)
    gradMask = Tensor(call.resultType(3), a.mask.shape());
  int64_t scores = a.queries * a.keys;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h) {
      int64_t head = b * a.heads + h, kv = b * a.kvHeads + a.kvHead(h);
      const double *qh = q.reals().data() + head * a.queries * a.width;
      const double *kh = k.reals().data() + kv * a.keys * a.width;
      const double *vh = v.reals().data() + kv * a.keys * a.valueWidth;
      const double *gh = grad.reals().data() + head * a.queries * a.valueWidth;
      const double *oh = out.reals().data() + head * a.queries * a.valueWidth;
      std::vector<double> p = scoresOf(a, b, h, qh, kh);
      for (int64_t i = 0; i < a.queries; ++i) {
        double l = lse.reals()[head * a.queries + i];
        for (int64_t j = 0; j < a.keys; ++j) {
          double &s = p[i * a.keys + j];
          s = s == -INFINITY || l == -INFINITY ? 0 : std::exp(s - l);
        }
      }
      std::vector<double> pt = transposed(p.data(), a.queries, a.keys);
      multiplyAdd(pt.data(), gh, gradV.realData() + kv * a.keys * a.valueWidth, a.keys, a.valueWidth, a.queries);
      // ds = p * (g v^T - rowsum(g * out))
      std::vector<double> vt = transposed(vh, a.keys, a.valueWidth);
      std::vector<double> ds(scores);
      multiplyAdd(gh, vt.data(), ds.data(), a.queries, a.keys, a.valueWidth);
      for (int64_t i = 0; i < a.queries; ++i) {
        long double delta = 0;
        for (int64_t j = 0; j < a.valueWidth; ++j)
          delta += gh[i * a.valueWidth + j] * oh[i * a.valueWidth + j];
        for (int64_t j = 0; j < a.keys; ++j)
          ds[i * a.keys + j] = p[i * a.keys + j] * (ds[i * a.keys + j] - static_cast<double>(delta));
      }
      if (wantsMask)
        std::copy(ds.begin(), ds.end(), gradMask.realData() + head * scores);
      for (double &value : ds)
        value *= a.scale;
      multiplyAdd(ds.data(), kh, gradQ.realData() + head * a.queries * a.width, a.queries, a.width, a.keys);
      std::vector<double> dst = transposed(ds.data(), a.queries, a.keys);
      multiplyAdd(dst.data(), qh, gradK.realData() + kv * a.keys * a.width, a.keys, a.width, a.queries);
    }
  call.result(std::move(gradQ));
  call.result(std::move(gradK));
  call.result(std::move(gradV));
  if (wantsMask)
    call.result(sumTo(gradMask, call.tensor("attn_mask").shape()));
  return success();
}

} // namespace

void registerAttention(EvaluatorRegistry &r) {
  r.add("aten.sdpa", evaluateForward);
  r.add("aten.sdpa_backward", evaluateBackward);
}

} // namespace spmd::interp
