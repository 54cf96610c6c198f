//===- AtenVerifyWindow.cpp - Verifiers of windows and rms norm -----------===//

#include "dialects/Aten/AtenNorm.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/AtenWindow.h"
#include "dialects/Aten/RuleBuilder.h"
#include "dialects/Aten/Window.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace spmd::aten;

using Shape = SmallVector<int64_t>;

LogicalResult spmd::aten::verifyRmsNorm(Operation *op) {
  auto forward = dyn_cast<RmsNormOp>(op);
  auto backward = dyn_cast<RmsNormBackwardOp>(op);
  Value input = forward ? forward.getInput() : backward.getInput();
  ArrayRef<int64_t> inner = forward ? forward.getNormalizedShape() : backward.getNormalizedShape();
  Shape shape = shapeOf(input);
  if (inner.empty() || inner.size() > shape.size() || ArrayRef(shape).take_back(inner.size()) != inner) // C1
    return op->emitOpError() << "normalizes [" << inner << "] of " << typeOf(input);
  Shape statistics = shape;
  std::fill(statistics.end() - inner.size(), statistics.end(), 1);
  if (forward) // C2, C3
    return success(succeeded(expectShape(op, forward.getRstd(), statistics)) &&
                   succeeded(expectShape(op, forward.getWeight(), inner)) &&
                   succeeded(expectShape(op, forward.getOut(), shape)));
  return success(succeeded(expectShape(op, backward.getGradOut(), shape)) &&
                 succeeded(expectShape(op, backward.getRstd(), statistics)) &&
                 succeeded(expectShape(op, backward.getWeight(), inner)) &&
                 succeeded(expectShape(op, backward.getGradInput(), shape)) &&
                 succeeded(expectShape(op, backward.getGradWeight(), inner)));
}

/// The windows that the attributes describe; failure, with an error, if the numbers of entries are not `rank` or a
/// stride, dilation or kernel is not positive.
static FailureOr<Windows> getWindows(Operation *op, ArrayRef<int64_t> kernel, size_t rank) {
  auto list = [&](StringRef name) { return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef(); };
  Windows windows{{kernel.begin(), kernel.end()},
                  llvm::SmallVector<int64_t, 3>(list("stride")),
                  llvm::SmallVector<int64_t, 3>(list("padding")),
                  llvm::SmallVector<int64_t, 3>(list("dilation"))};
  auto isPositive = [](int64_t value) { return value > 0; };
  bool fits = windows.kernel.size() == rank && windows.stride.size() == rank && windows.padding.size() == rank &&
              windows.dilation.size() == rank && llvm::all_of(windows.kernel, isPositive) &&
              llvm::all_of(windows.stride, isPositive) && llvm::all_of(windows.dilation, isPositive) &&
              llvm::all_of(windows.padding, [](int64_t value) { return value >= 0; });
  if (fits)
    return windows;
  return op->emitOpError() << "has kernel [" << kernel << "], stride [" << list("stride") << "], padding ["
                           << list("padding") << "] and dilation [" << list("dilation") << "] for " << rank
                           << " spatial dimensions";
}

LogicalResult spmd::aten::verifyConvolution(Operation *op) {
  auto forward = dyn_cast<ConvolutionOp>(op);
  auto backward = dyn_cast<ConvolutionBackwardOp>(op);
  Value input = forward ? forward.getInput() : backward.getInput();
  Value weight = forward ? forward.getWeight() : backward.getWeight();
  Value output = forward ? forward.getResult() : backward.getGradOutput();
  Shape in = shapeOf(input), w = shapeOf(weight), out = shapeOf(output);
  Type element = typeOf(input).getElementType();
  if (in.size() < 3 || in.size() > 5 || w.size() != in.size() || !isa<FloatType>(element) ||
      typeOf(weight).getElementType() != element) // C1
    return op->emitOpError() << "has input " << typeOf(input) << " and weight " << typeOf(weight)
                             << ", expected floats over batch, channels and one to three spatial dimensions";
  size_t rank = in.size() - 2;
  FailureOr<Windows> windows = getWindows(op, ArrayRef(w).drop_front(2), rank);
  if (failed(windows))
    return failure();
  ArrayRef<int64_t> outputPadding = op->getAttrOfType<DenseI64ArrayAttr>("output_padding").asArrayRef();
  if (outputPadding.size() != rank)
    return op->emitOpError() << "has output_padding [" << outputPadding << "] for " << rank << " spatial dimensions";
  int64_t groups = cast<IntegerAttr>(op->getAttr("groups")).getInt();
  bool transposed = cast<BoolAttr>(op->getAttr("transposed")).getValue();
  // C2: a weight is [out, in / groups, ...], a transposed one [in, out / groups, ...].
  int64_t outChannels = transposed ? w[1] * groups : w[0];
  bool fits = groups > 0 && (transposed ? in[1] == w[0] : in[1] == w[1] * groups) && w[0] % groups == 0;
  if (!fits)
    return op->emitOpError() << "has input " << typeOf(input) << " and weight " << typeOf(weight) << " for " << groups
                             << " groups";
  Shape expected{in[0], outChannels}; // C3
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t size = in[dim + 2];
    expected.push_back(transposed ? (size - 1) * windows->stride[dim] - 2 * windows->padding[dim] +
                                        windows->dilation[dim] * (w[dim + 2] - 1) + outputPadding[dim] + 1
                                  : windows->count(dim, size));
  }
  if (failed(expectShape(op, output, expected)))
    return failure();
  if (forward)
    return expectShape(op, forward.getBias(), {outChannels});
  return success(succeeded(expectShape(op, backward.getGradInput(), in)) &&
                 succeeded(expectShape(op, backward.getGradWeight(), w)) &&
                 succeeded(expectShape(op, backward.getGradBias(), {outChannels})));
}

LogicalResult spmd::aten::verifyMaxPool(Operation *op) {
  bool backward = op->getNumResults() == 1;
  Value self = op->getOperand(backward ? 1 : 0);
  Value output = backward ? op->getOperand(0) : op->getResult(0);
  Value indices = backward ? op->getOperand(2) : op->getResult(1);
  Shape in = shapeOf(self), out = shapeOf(output);
  ArrayRef<int64_t> kernel = op->getAttrOfType<DenseI64ArrayAttr>("kernel_size").asArrayRef();
  if (in.size() != kernel.size() + 2 || out.size() != in.size() || out[0] != in[0] || out[1] != in[1]) // C1
    return op->emitOpError() << "has " << typeOf(self) << " and " << typeOf(output) << ", expected batch, channels and "
                             << kernel.size() << " spatial dimensions";
  FailureOr<Windows> windows = getWindows(op, kernel, kernel.size());
  if (failed(windows))
    return failure();
  bool ceil = cast<BoolAttr>(op->getAttr("ceil_mode")).getValue();
  for (size_t dim = 0; dim < kernel.size(); ++dim) { // C2
    int64_t count = windows->count(dim, in[dim + 2]);
    bool fits = out[dim + 2] == count || (ceil && out[dim + 2] == count + 1);
    if (!fits || windows->padding[dim] > kernel[dim] / 2)
      return op->emitOpError() << "has " << typeOf(self) << " and " << typeOf(output) << ", expected " << count
                               << " windows along spatial dimension " << dim << " and a padding of at most half of "
                               << kernel[dim];
  }
  if (!typeOf(indices).getElementType().isInteger(64))
    return op->emitOpError() << "has indices " << typeOf(indices) << ", expected i64";
  return success(succeeded(expectShape(op, indices, out)) &&
                 succeeded(expectShape(op, backward ? op->getResult(0) : Value(), in)));
}

LogicalResult spmd::aten::verifyIm2col(Operation *op) {
  bool folds = isa<Col2imOp>(op);
  Value image = folds ? op->getResult(0) : op->getOperand(0), columns = folds ? op->getOperand(0) : op->getResult(0);
  Shape in = shapeOf(image);
  ArrayRef<int64_t> kernel = op->getAttrOfType<DenseI64ArrayAttr>("kernel_size").asArrayRef();
  if (in.size() != 4) // C1
    return op->emitOpError() << "has image " << typeOf(image) << ", expected batch, channels, height and width";
  FailureOr<Windows> windows = getWindows(op, kernel, 2);
  if (failed(windows))
    return failure();
  return expectShape(op, columns,
                     {in[0], in[1] * windows->kernelElements(), windows->count(0, in[2]) * windows->count(1, in[3])});
}
