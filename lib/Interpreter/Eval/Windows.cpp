//===- Windows.cpp - convolutions, max pools, im2col ----------------------===//
//
// All of them relate a *fine* image to a *coarse* one with an element per window: by the definition, tap by tap, in up
// to three dimensions.
//===----------------------------------------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include <array>
#include <limits>

using namespace mlir;

namespace spmd::interp {
namespace {

/// Windows over three spatial dims; missing ones are of size one.
struct Geometry {
  std::array<int64_t, 3> fine, coarse, kernel, stride, padding, dilation;

  Geometry(OpCall &call, ShapeRef fineShape, ShapeRef coarseShape, ShapeRef kernelShape) {
    fine = coarse = kernel = stride = dilation = {1, 1, 1};
    padding = {0, 0, 0};
    size_t rank = kernelShape.size(), first = 3 - rank;
    for (size_t dim = 0; dim < rank; ++dim) {
      fine[first + dim] = fineShape[dim];
      coarse[first + dim] = coarseShape[dim];
      kernel[first + dim] = kernelShape[dim];
      stride[first + dim] = call.integers("stride")[dim];
      padding[first + dim] = call.integers("padding")[dim];
      dilation[first + dim] = call.integers("dilation")[dim];
    }
  }

  static int64_t size(const std::array<int64_t, 3> &shape) { return shape[0] * shape[1] * shape[2]; }

  /// Calls visit(window, kernel element, fine element) with flat numbers, for the taps that lie inside the image.
  template <typename Fn>
  void forEachTap(Fn visit) const {
    auto at = [](const std::array<int64_t, 3> &shape, int64_t flat) {
      return std::array<int64_t, 3>{flat / (shape[1] * shape[2]), flat / shape[2] % shape[1], flat % shape[2]};
    };
    for (int64_t o = 0, windows = size(coarse); o < windows; ++o)
      for (int64_t k = 0, taps = size(kernel); k < taps; ++k) {
        std::array<int64_t, 3> window = at(coarse, o), tap = at(kernel, k);
        int64_t element = 0;
        bool inside = true;
        for (int dim = 0; dim < 3; ++dim) {
          int64_t position = window[dim] * stride[dim] - padding[dim] + tap[dim] * dilation[dim];
          inside &= position >= 0 && position < fine[dim];
          element = element * fine[dim] + position;
        }
        if (inside)
          visit(o, k, element);
      }
  }
};

/// A convolution: weight[coarse channel][fine channel of its group][tap] joins elements of both images. Of a transposed
/// one, the input is the coarse image.
struct Convolution {
  Geometry geometry;
  int64_t batch, coarseChannels, fineChannels, groupChannels, groups;

  Convolution(OpCall &call, const Tensor &fine, ShapeRef coarse, const Tensor &weight)
      : geometry(call, fine.shape().drop_front(2), coarse.drop_front(2), weight.shape().drop_front(2)),
        batch(coarse[0]), coarseChannels(weight.dim(0)), fineChannels(fine.dim(1)), groupChannels(weight.dim(1)),
        groups(call.integer("groups")) {}

  /// Calls visit(coarse element, fine element, weight element).
  template <typename Fn>
  void forEachTerm(Fn visit) const {
    int64_t windows = Geometry::size(geometry.coarse), pixels = Geometry::size(geometry.fine),
            taps = Geometry::size(geometry.kernel), perGroup = coarseChannels / groups;
    geometry.forEachTap([&](int64_t o, int64_t k, int64_t p) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t a = 0; a < coarseChannels; ++a)
          for (int64_t b = 0; b < groupChannels; ++b) {
            int64_t channel = a / perGroup * groupChannels + b;
            visit((n * coarseChannels + a) * windows + o, (n * fineChannels + channel) * pixels + p,
                  (a * groupChannels + b) * taps + k);
          }
    });
  }
};

/// Elements of a result, summed in long double.
struct Sums {
  std::vector<long double> values;
  explicit Sums(ShapeRef shape) : values(numElements(shape)) {}
  Tensor get(DType dtype, ShapeRef shape) const {
    return Tensor(dtype, shape, std::vector<double>(values.begin(), values.end()));
  }
};

LogicalResult evaluateConvolution(OpCall &call) {
  const Tensor &input = call.tensor("input"), &weight = call.tensor("weight"), &bias = call.tensor("bias");
  Shape shape(cast<RankedTensorType>(call.op->getResult(0).getType()).getShape());
  bool transposed = call.flag("transposed");
  Sums sums(shape);
  if (transposed) {
    Tensor fine(input.dtype(), shape);
    Convolution(call, fine, input.shape(), weight).forEachTerm([&](int64_t a, int64_t b, int64_t w) {
      sums.values[b] += static_cast<long double>(input.reals()[a]) * weight.reals()[w];
    });
  } else {
    Convolution(call, input, shape, weight).forEachTerm([&](int64_t a, int64_t b, int64_t w) {
      sums.values[a] += static_cast<long double>(input.reals()[b]) * weight.reals()[w];
    });
  }
  if (bias) {
    int64_t plane = numElements(ShapeRef(shape).drop_front(2));
    for (size_t i = 0; i < sums.values.size(); ++i)
      sums.values[i] += bias.reals()[i / plane % shape[1]];
  }
  call.result(sums.get(call.resultType(), shape));
  return success();
}

LogicalResult evaluateConvolutionBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_output"), &input = call.tensor("input"), &weight = call.tensor("weight");
  bool transposed = call.flag("transposed");
  const Tensor &fine = transposed ? grad : input, &coarse = transposed ? input : grad;
  Sums gradInput(input.shape()), gradWeight(weight.shape()), gradBias({grad.dim(1)});
  Convolution(call, fine, coarse.shape(), weight).forEachTerm([&](int64_t a, int64_t b, int64_t w) {
    int64_t own = transposed ? a : b, other = transposed ? b : a;
    gradInput.values[own] += static_cast<long double>(grad.reals()[other]) * weight.reals()[w];
    gradWeight.values[w] += static_cast<long double>(coarse.reals()[a]) * fine.reals()[b];
  });
  int64_t plane = numElements(grad.shape().drop_front(2));
  for (int64_t i = 0, e = grad.numel(); i < e; ++i)
    gradBias.values[i / plane % grad.dim(1)] += grad.reals()[i];
  SmallVector<bool> mask = call.flags("output_mask");
  if (mask[0])
    call.result(gradInput.get(input.dtype(), input.shape()));
  if (mask[1])
    call.result(gradWeight.get(weight.dtype(), weight.shape()));
  if (mask[2])
    call.result(gradBias.get(grad.dtype(), {grad.dim(1)}));
  return success();
}

LogicalResult evaluateMaxPool(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(cast<RankedTensorType>(call.op->getResult(0).getType()).getShape());
  shape[0] = self.dim(0);
  shape[1] = self.dim(1);
  Geometry geometry(call, self.shape().drop_front(2), ShapeRef(shape).drop_front(2), call.integers("kernel_size"));
  Tensor out = Tensor::full(call.resultType(0), shape, -std::numeric_limits<double>::infinity());
  Tensor indices = Tensor::full(call.resultType(1), shape, -1);
  int64_t pixels = Geometry::size(geometry.fine), windows = Geometry::size(geometry.coarse);
  for (int64_t plane = 0, planes = self.dim(0) * self.dim(1); plane < planes; ++plane)
    geometry.forEachTap([&](int64_t o, int64_t, int64_t p) {
      double value = self.at(plane * pixels + p);
      int64_t at = plane * windows + o;
      // The first of equal ones; not-a-number wins.
      if (indices.integers()[at] < 0 || value > out.at(at) || value != value) {
        out.set(at, value);
        indices.set(at, static_cast<double>(p));
      }
    });
  call.result(std::move(out));
  call.result(std::move(indices));
  return success();
}

LogicalResult evaluateMaxPoolBackward(OpCall &call) {
  const Tensor &grad = call.tensor("grad_output"), &self = call.tensor("self"), &indices = call.tensor("indices");
  int64_t windows = numElements(grad.shape().drop_front(2)), pixels = numElements(self.shape().drop_front(2));
  Sums sums(self.shape());
  for (int64_t i = 0, e = grad.numel(); i < e; ++i) {
    int64_t index = indices.integers()[i];
    // A padded row of a shard may hold any index.
    if (index >= 0 && index < pixels)
      sums.values[i / windows * pixels + index] += grad.at(i);
  }
  call.result(sums.get(call.resultType(), self.shape()));
  return success();
}

/// Calls visit(image element, column element).
template <typename Fn>
void forEachColumnElement(OpCall &call, ShapeRef image, Fn visit) {
  ShapeRef kernel = call.integers("kernel_size");
  Shape counts;
  for (int dim = 0; dim < 2; ++dim)
    counts.push_back((image[dim + 2] + 2 * call.integers("padding")[dim] -
                      call.integers("dilation")[dim] * (kernel[dim] - 1) - 1) /
                         call.integers("stride")[dim] +
                     1);
  Geometry geometry(call, image.drop_front(2), counts, kernel);
  int64_t pixels = Geometry::size(geometry.fine), windows = Geometry::size(geometry.coarse),
          taps = Geometry::size(geometry.kernel);
  for (int64_t plane = 0, planes = image[0] * image[1]; plane < planes; ++plane)
    geometry.forEachTap(
        [&](int64_t o, int64_t k, int64_t p) { visit(plane * pixels + p, (plane * taps + k) * windows + o); });
}

LogicalResult evaluateIm2col(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(cast<RankedTensorType>(call.op->getResult(0).getType()).getShape());
  Tensor result(call.resultType(), shape);
  forEachColumnElement(call, self.shape(), [&](int64_t p, int64_t c) { result.set(c, self.at(p)); });
  call.result(std::move(result));
  return success();
}

LogicalResult evaluateCol2im(OpCall &call) {
  const Tensor &self = call.tensor("self");
  Shape shape(cast<RankedTensorType>(call.op->getResult(0).getType()).getShape());
  Sums sums(shape);
  forEachColumnElement(call, shape, [&](int64_t p, int64_t c) { sums.values[p] += self.at(c); });
  call.result(sums.get(call.resultType(), shape));
  return success();
}

} // namespace

void registerWindows(EvaluatorRegistry &r) {
  r.add("aten.convolution", evaluateConvolution);
  r.add("aten.convolution_backward", evaluateConvolutionBackward);
  for (const char *dims : {"2", "3"}) {
    std::string name = std::string("aten.max_pool") + dims + "d_with_indices";
    r.add(name, evaluateMaxPool);
    r.add(name + "_backward", evaluateMaxPoolBackward);
  }
  r.add("aten.im2col", evaluateIm2col);
  r.add("aten.col2im", evaluateCol2im);
}

} // namespace spmd::interp
