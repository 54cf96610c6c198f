//===- Norms.cpp - layer norm, rms norm -----------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

/// The input as `rows` of `width` elements that are normalized together.
struct NormShape {
  int64_t rows = 1, width = 1;
  Shape statistics; // leading dims, then ones

  NormShape(ShapeRef input, ShapeRef normalized) {
    int64_t lead = input.size() - normalized.size();
    for (int64_t i = 0, e = input.size(); i < e; ++i) {
      (i < lead ? rows : width) *= input[i];
      statistics.push_back(i < lead ? input[i] : 1);
    }
  }
};

static LogicalResult evaluateLayerNorm(OpCall &call) {
  const Tensor &input = call.tensor("input"), &weight = call.tensor("weight"), &bias = call.tensor("bias");
  NormShape shape(input.shape(), call.integers("normalized_shape"));
  double eps = call.number("eps");
  Tensor out(call.resultType(0), input.shape());
  Tensor mean(call.resultType(1), shape.statistics);
  Tensor rstd(call.resultType(2), shape.statistics);
  for (int64_t r = 0; r < shape.rows; ++r) {
    const double *x = input.reals().data() + r * shape.width;
    long double sum = 0, squares = 0;
    for (int64_t i = 0; i < shape.width; ++i)
      sum += x[i];
    double m = sum / shape.width;
    for (int64_t i = 0; i < shape.width; ++i)
      squares += (x[i] - m) * (x[i] - m);
    double s = 1 / std::sqrt(static_cast<double>(squares / shape.width) + eps);
    for (int64_t i = 0; i < shape.width; ++i)
      out.realData()[r * shape.width + i] =
          (x[i] - m) * s * (weight ? weight.reals()[i] : 1) + (bias ? bias.reals()[i] : 0);
    mean.set(r, m);
    rstd.set(r, s);
  }
  call.result(std::move(out));
  call.result(std::move(mean));
  call.result(std::move(rstd));
  return success();
}

static LogicalResult evaluateLayerNormBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_out"), &input = call.tensor("input"), &mean = call.tensor("mean"),
               &rstd = call.tensor("rstd"), &weight = call.tensor("weight");
  ShapeRef normalized = call.integers("normalized_shape");
  NormShape shape(input.shape(), normalized);
  int64_t width = shape.width;
  Tensor gradInput(input.dtype(), input.shape());
  std::vector<long double> gradWeight(width), gradBias(width);
  for (int64_t r = 0; r < shape.rows; ++r) {
    const double *x = input.reals().data() + r * width;
    const double *g = grad.reals().data() + r * width;
    double m = mean.reals()[r], s = rstd.reals()[r];
    // With h = normalized x and d = g * weight, the gradient of the input is
    // s * (d - mean(d) - h * mean(d * h)).
    long double sumD = 0, sumDH = 0;
    for (int64_t i = 0; i < width; ++i) {
      double h = (x[i] - m) * s, d = g[i] * (weight ? weight.reals()[i] : 1);
      sumD += d;
      sumDH += d * h;
      gradWeight[i] += g[i] * h;
      gradBias[i] += g[i];
    }
    double meanD = sumD / width, meanDH = sumDH / width;
    for (int64_t i = 0; i < width; ++i) {
      double h = (x[i] - m) * s, d = g[i] * (weight ? weight.reals()[i] : 1);
      gradInput.realData()[r * width + i] = s * (d - meanD - h * meanDH);
    }
  }
  SmallVector<bool> mask = call.flags("output_mask");
  auto vector = [&](const std::vector<long double> &values) {
    return Tensor(input.dtype(), normalized, std::vector<double>(values.begin(), values.end()));
  };
  if (mask[0])
    call.result(std::move(gradInput));
  if (mask[1])
    call.result(vector(gradWeight));
  if (mask[2])
    call.result(vector(gradBias));
  return success();
}

static LogicalResult evaluateRmsNorm(OpCall &call) {
  const Tensor &input = call.tensor("input"), &weight = call.tensor("weight");
  NormShape shape(input.shape(), call.integers("normalized_shape"));
  Tensor out(call.resultType(0), input.shape()), rstd(call.resultType(1), shape.statistics);
  for (int64_t r = 0; r < shape.rows; ++r) {
    const double *x = input.reals().data() + r * shape.width;
    long double squares = 0;
    for (int64_t i = 0; i < shape.width; ++i)
      squares += x[i] * x[i];
    double s = 1 / std::sqrt(static_cast<double>(squares / shape.width) + call.number("eps"));
    for (int64_t i = 0; i < shape.width; ++i)
      out.realData()[r * shape.width + i] = x[i] * s * (weight ? weight.reals()[i] : 1);
    rstd.set(r, s);
  }
  call.result(std::move(out));
  call.result(std::move(rstd));
  return success();
}

static LogicalResult evaluateRmsNormBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_out"), &input = call.tensor("input"), &rstd = call.tensor("rstd"),
               &weight = call.tensor("weight");
  ShapeRef normalized = call.integers("normalized_shape");
  NormShape shape(input.shape(), normalized);
  int64_t width = shape.width;
  Tensor gradInput(input.dtype(), input.shape());
  std::vector<long double> gradWeight(width);
  for (int64_t r = 0; r < shape.rows; ++r) {
    const double *x = input.reals().data() + r * width;
    const double *g = grad.reals().data() + r * width;
    // With h = normalized x and d = g * weight, the gradient of the input is s * (d - h * mean(d * h)).
    double s = rstd.reals()[r];
    long double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      sum += g[i] * (weight ? weight.reals()[i] : 1) * x[i] * s;
      gradWeight[i] += g[i] * x[i] * s;
    }
    double mean = sum / width;
    for (int64_t i = 0; i < width; ++i)
      gradInput.realData()[r * width + i] = s * (g[i] * (weight ? weight.reals()[i] : 1) - x[i] * s * mean);
  }
  SmallVector<bool> mask = call.flags("output_mask");
  if (mask[0])
    call.result(std::move(gradInput));
  if (mask[1])
    call.result(Tensor(input.dtype(), normalized, std::vector<double>(gradWeight.begin(), gradWeight.end())));
  return success();
}

void registerNorms(EvaluatorRegistry &r) {
  r.add("aten.rms_norm", evaluateRmsNorm);
  r.add("aten.rms_norm_backward", evaluateRmsNormBackward);
  r.add("aten.native_layer_norm", evaluateLayerNorm);
  r.add("aten.native_layer_norm_backward", evaluateLayerNormBackward);
}

} // namespace spmd::interp
