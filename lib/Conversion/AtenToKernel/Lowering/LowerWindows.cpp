//===- LowerWindows.cpp - convolutions, max pools, im2col -----------------===//
//
// [Note: windows as layouts]
// Element k of window o lies o * stride - padding + k * dilation elements along a spatial dim: linear in o and k, so
// all windows of an image are one layout of it, [channels, kernel, batch, windows], in which elements recur. Outside of
// the image a guarded read and a comparison of positions give the fill. A convolution is the GEMM of its
// weight [group, channels out, channels in x kernel] with that, [group, channels in x kernel, batch x windows]; where
// kernel and stride agree (patch embedding) nothing recurs and the windows are a permutation.
//
// The way back, from windows to the image, is a sum over the kernel's elements, each of which lies in at most one
// window as its k-th element: the image is seen as [.., size / stride, stride, ..], so that the window's number is
// linear again, and a comparison says which kernel elements meet which position. Each image element sums in the order
// of the kernel.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenWindow.h"
#include "dialects/Aten/Window.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using spmd::aten::Windows;

namespace spmd::fusion {

namespace {

/// Kernel elements that one scalar function takes in: what it reads must fit into a cluster.
constexpr size_t kTapsPerNode = 8;

/// A tensor of windows or of an image, with one stride per dim.
struct Strided {
  Ref ref;
  SmallVector<int64_t> strides;

  Strided(GraphBuilder &g, Ref given) : ref(std::move(given)) {
    std::optional<SmallVector<int64_t>> found;
    if (!ref.node->isVirtual() && !ref.guarded)
      found = ref.layout.getStrides(ref.shape);
    if (!found) {
      ref = g.materialize(ref);
      found = ref.layout.getStrides(ref.shape);
    }
    strides = *found;
  }
  Ref view(ArrayRef<Mode> modes, int64_t offset, ArrayRef<int64_t> shape, bool guarded) const {
    return {ref.node, Layout::get(modes, ref.layout.getOffset() + offset, ref.layout.getCoordStrides()),
            SmallVector<int64_t>(shape), guarded};
  }
};

/// What an op's windows are.
struct Problem {
  Windows windows;
  SmallVector<int64_t, 3> image, counts; ///< sizes of the spatial dims, numbers of windows along them

  Problem(Operation *op, ArrayRef<int64_t> kernel, ArrayRef<int64_t> imageShape, ArrayRef<int64_t> countShape)
      : image(imageShape), counts(countShape) {
    auto list = [&](StringRef name) {
      return llvm::SmallVector<int64_t, 3>(op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef());
    };
    windows = {llvm::SmallVector<int64_t, 3>(kernel), list("stride"), list("padding"), list("dilation")};
  }
  size_t rank() const { return image.size(); }
  /// All kernel elements in order, as positions per dim.
  SmallVector<SmallVector<int64_t, 3>> taps() const {
    SmallVector<SmallVector<int64_t, 3>> all;
    for (int64_t flat = 0, e = windows.kernelElements(); flat < e; ++flat) {
      SmallVector<int64_t, 3> tap(rank());
      int64_t rest = flat;
      for (size_t dim = rank(); dim-- > 0; rest /= windows.kernel[dim])
        tap[dim] = rest % windows.kernel[dim];
      all.push_back(tap);
    }
    return all;
  }
  /// Whether some window reaches outside of the image along `dim`.
  bool reachesOutside(size_t dim) const {
    int64_t last = (counts[dim] - 1) * windows.stride[dim] + (windows.kernel[dim] - 1) * windows.dilation[dim];
    return windows.padding[dim] > 0 || last - windows.padding[dim] >= image[dim];
  }
};

Value isBetween(ScalarBuilder &s, Value x, int64_t low, int64_t high) {
  return arith::AndIOp::create(s.b, s.compare("ge", x, s.constant(static_cast<double>(low))),
                               s.compare("lt", x, s.constant(static_cast<double>(high))));
}

/// start + step * i along dim `dim` of a space of `rank` dims, to broadcast.
Ref positionsAlong(GraphBuilder &g, Type i64, int64_t count, size_t dim, size_t rank, int64_t start, int64_t step) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = count;
  return g.reshape(g.iota(count, i64, static_cast<double>(start), static_cast<double>(step)), shape);
}

//===----------------------------------------------------------------------===//
// From the image to windows
//===----------------------------------------------------------------------===//

/// The windows of `image` [batch, channels, ..]: [channels, kernel, batch, windows], or [batch, channels, kernel,
/// windows], zero outside of the image.
Ref buildWindows(GraphBuilder &g, Ref given, const Problem &p, bool batchFirst) {
  Type i64 = IntegerType::get(given.getElementType().getContext(), 64), type = given.getElementType();
  Strided image(g, given);
  const Windows &w = p.windows;
  SmallVector<Mode> modes;
  SmallVector<int64_t> shape;
  auto add = [&](int64_t size, int64_t stride) {
    modes.push_back({size, stride});
    shape.push_back(size);
  };
  if (batchFirst)
    add(image.ref.shape[0], image.strides[0]);
  add(image.ref.shape[1], image.strides[1]);
  size_t firstTap = shape.size();
  for (size_t dim = 0; dim < p.rank(); ++dim)
    add(w.kernel[dim], image.strides[dim + 2] * w.dilation[dim]);
  if (!batchFirst)
    add(image.ref.shape[0], image.strides[0]);
  size_t firstWindow = shape.size();
  int64_t offset = 0;
  for (size_t dim = 0; dim < p.rank(); ++dim) {
    add(p.counts[dim], image.strides[dim + 2] * w.stride[dim]);
    offset -= w.padding[dim] * image.strides[dim + 2];
  }
  bool guarded = false;
  for (size_t dim = 0; dim < p.rank(); ++dim)
    guarded |= p.reachesOutside(dim);
  Ref values = image.view(modes, offset, shape, guarded);
  if (!guarded)
    return values;

  // o * stride + k * dilation - padding is inside the image.
  SmallVector<Ref> inputs = {values};
  SmallVector<int64_t> sizes;
  for (size_t dim = 0; dim < p.rank(); ++dim) {
    if (!p.reachesOutside(dim))
      continue;
    inputs.push_back(
        positionsAlong(g, i64, p.counts[dim], firstWindow + dim, shape.size(), -w.padding[dim], w.stride[dim]));
    inputs.push_back(positionsAlong(g, i64, w.kernel[dim], firstTap + dim, shape.size(), 0, w.dilation[dim]));
    sizes.push_back(p.image[dim]);
  }
  return g.pointwise(inputs, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, i64);
    Value inside;
    for (auto [i, size] : llvm::enumerate(sizes)) {
      Value here = isBetween(s, s.add(args[1 + 2 * i], args[2 + 2 * i]), 0, size);
      inside = inside ? Value(arith::AndIOp::create(b, inside, here)) : here;
    }
    return s.select(inside, args[0], ScalarBuilder(b, type).constant(0));
  });
}

//===----------------------------------------------------------------------===//
// From windows to the image
//===----------------------------------------------------------------------===//

/// The space of an image seen as [batch, channels, (size / stride, stride) per dim], and where kernel elements meet it.
class ImageSpace {
public:
  ImageSpace(GraphBuilder &g, const Problem &p, int64_t batch, int64_t channels, Type i64)
      : p(p), i64(i64), shape({batch, channels}) {
    for (size_t dim = 0; dim < p.rank(); ++dim)
      shape.append({(p.image[dim] + p.windows.stride[dim] - 1) / p.windows.stride[dim], p.windows.stride[dim]});
    for (size_t dim = 2; dim < shape.size(); ++dim)
      positions.push_back(positionsAlong(g, i64, shape[dim], dim, shape.size(), 0, 1));
  }

  /// Two per spatial dim: quotient and remainder of the position by the stride.
  ArrayRef<Ref> getPositions() const { return positions; }

  /// Of `windows`, whose elements for kernel element `tap` start at `offset`, what meets each image element: guarded.
  Ref read(const Strided &windows, int64_t batchStride, int64_t channelStride, ArrayRef<int64_t> strides,
           ArrayRef<int64_t> tap, int64_t offset) const {
    SmallVector<Mode> modes = {{shape[0], batchStride}, {shape[1], channelStride}};
    for (size_t dim = 0; dim < p.rank(); ++dim) {
      modes.push_back({shape[2 + 2 * dim], strides[dim]});
      modes.push_back({shape[3 + 2 * dim], 0});
      offset += getShift(dim, tap[dim]) * strides[dim];
    }
    return windows.view(modes, offset, shape, /*guarded=*/true);
  }

  /// Whether `tap` meets the element whose positions are given.
  Value meets(ScalarBuilder &s, ArrayRef<int64_t> tap, ValueRange positions) const {
    Value all;
    auto require = [&](Value condition) {
      all = all ? Value(arith::AndIOp::create(s.b, all, condition)) : condition;
    };
    for (size_t dim = 0; dim < p.rank(); ++dim) {
      int64_t shift = getShift(dim, tap[dim]);
      require(isBetween(s, positions[2 * dim], -shift, p.counts[dim] - shift));
      if (p.windows.stride[dim] > 1)
        require(s.compare("eq", positions[2 * dim + 1], s.constant(static_cast<double>(getRemainder(dim, tap[dim])))));
    }
    return all;
  }

  /// The number of the image element within its plane.
  Value getPlaneIndex(ScalarBuilder &s, ValueRange positions) const {
    Value index;
    for (size_t dim = 0; dim < p.rank(); ++dim) {
      Value here = s.add(s.mul(positions[2 * dim], s.constant(static_cast<double>(p.windows.stride[dim]))),
                         positions[2 * dim + 1]);
      index = index ? s.add(s.mul(index, s.constant(static_cast<double>(p.image[dim]))), here) : here;
    }
    return index;
  }

  /// A value over this space as the image: without the positions beyond its end.
  Ref asImage(GraphBuilder &g, Ref value) const {
    SmallVector<int64_t> whole = {shape[0], shape[1]};
    for (size_t dim = 0; dim < p.rank(); ++dim)
      whole.push_back(shape[2 + 2 * dim] * shape[3 + 2 * dim]);
    value = g.reshape(value, whole);
    for (size_t dim = 0; dim < p.rank(); ++dim)
      value = g.slice(value, static_cast<int64_t>(dim) + 2, 0, 1, p.image[dim]);
    return value;
  }

private:
  /// Remainder of the positions that the kernel element meets, and window minus quotient there.
  int64_t getRemainder(size_t dim, int64_t k) const {
    int64_t stride = p.windows.stride[dim], at = k * p.windows.dilation[dim] - p.windows.padding[dim];
    return ((at % stride) + stride) % stride;
  }
  int64_t getShift(size_t dim, int64_t k) const {
    int64_t at = k * p.windows.dilation[dim] - p.windows.padding[dim];
    return (getRemainder(dim, k) - at) / p.windows.stride[dim];
  }

  Problem p;
  Type i64;
  SmallVector<int64_t> shape;
  SmallVector<Ref> positions;
};

/// Adds up, over all kernel elements, what `getTerm` makes of the values that `read` gives for one.
Ref sumOverTaps(GraphBuilder &g, const ImageSpace &space, const Problem &p, Type type,
                function_ref<SmallVector<Ref>(ArrayRef<int64_t> tap, int64_t number)> read,
                std::function<Value(ScalarBuilder &, ValueRange values, ValueRange positions)> getTerm) {
  Type i64 = IntegerType::get(type.getContext(), 64);
  auto taps = p.taps();
  std::optional<Ref> sum;
  for (size_t first = 0; first < taps.size(); first += kTapsPerNode) {
    auto chunk = llvm::to_vector(ArrayRef(taps).slice(first, std::min(kTapsPerNode, taps.size() - first)));
    SmallVector<Ref> inputs(space.getPositions());
    size_t numPositions = inputs.size(), perTap = 0;
    for (auto [i, tap] : llvm::enumerate(chunk)) {
      SmallVector<Ref> values = read(tap, static_cast<int64_t>(first + i));
      perTap = values.size();
      llvm::append_range(inputs, values);
    }
    bool continues = sum.has_value();
    if (continues)
      inputs.push_back(*sum);
    sum = g.pointwise(inputs, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder positions(b, i64), values(b, type);
      Value zero = values.constant(0), total = continues ? args.back() : Value();
      ValueRange at = args.take_front(numPositions);
      for (auto [i, tap] : llvm::enumerate(chunk)) {
        Value term = getTerm(values, args.slice(numPositions + i * perTap, perTap), at);
        term = values.select(space.meets(positions, tap, at), term, zero);
        total = total ? values.add(total, term) : term;
      }
      return total;
    });
  }
  return space.asImage(g, *sum);
}

/// The image [batch, channels, ..] that is the sum of its `windows`, contiguous [channels, kernel, batch, windows] or
/// [batch, channels, kernel, windows].
Ref foldWindows(GraphBuilder &g, Ref given, const Problem &p, int64_t batch, int64_t channels, bool batchFirst) {
  Type type = given.getElementType(), i64 = IntegerType::get(type.getContext(), 64);
  Ref flat = g.reshape(given, {given.getNumElements()});
  Strided windows(g, g.contiguous(flat));
  int64_t taps = p.windows.kernelElements(), count = 1;
  SmallVector<int64_t> strides(p.rank());
  for (size_t dim = p.rank(); dim-- > 0; count *= p.counts[dim])
    strides[dim] = count;
  int64_t batchStride = batchFirst ? channels * taps * count : count;
  int64_t tapStride = batchFirst ? count : batch * count, channelStride = taps * tapStride;
  ImageSpace space(g, p, batch, channels, i64);
  return sumOverTaps(
      g, space, p, type,
      [&](ArrayRef<int64_t> tap, int64_t number) {
        return SmallVector<Ref>{space.read(windows, batchStride, channelStride, strides, tap, number * tapStride)};
      },
      [](ScalarBuilder &, ValueRange values, ValueRange) { return values[0]; });
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// The two images of a convolution: windows lie in the *fine* one, the *coarse* one has an element per window. A weight
/// is [coarse channels, fine channels of a group, kernel]; of a transposed convolution, the input is the coarse image.
struct Convolution {
  GraphBuilder &g;
  Problem p;
  int64_t batch, groups, coarseChannels, fineChannels, taps;
  SmallVector<int64_t> coarseShape, weightShape;
  Type compute;

  Convolution(GraphBuilder &g, Operation *op, ArrayRef<int64_t> fine, ArrayRef<int64_t> coarse, Ref weight)
      : g(g), p(op, ArrayRef<int64_t>(weight.shape).drop_front(2), fine.drop_front(2), coarse.drop_front(2)),
        batch(fine[0]), groups(cast<IntegerAttr>(op->getAttr("groups")).getInt()), coarseChannels(coarse[1]),
        fineChannels(fine[1]), taps(p.windows.kernelElements()), coarseShape(coarse), weightShape(weight.shape),
        compute(getComputeType(weight.getElementType())) {}

  int64_t perGroup() const { return fineChannels / groups * taps; }
  int64_t columns() const { return batch * numElements(ArrayRef<int64_t>(coarseShape).drop_front(2)); }

  /// [groups, channels in x kernel, batch x windows]
  Ref asWindows(Ref fine) {
    return g.reshape(buildWindows(g, g.cast(fine, compute), p, /*batchFirst=*/false), {groups, perGroup(), columns()});
  }
  /// [groups, coarse channels, batch x windows]
  Ref asRows(Ref coarse) {
    SmallVector<int64_t> order = {1, 0};
    for (size_t dim = 0; dim < p.rank(); ++dim)
      order.push_back(static_cast<int64_t>(dim) + 2);
    Ref rows = g.reshape(g.permute(g.cast(coarse, compute), order), {groups, coarseChannels / groups, columns()});
    return asGemmOperand(g, rows);
  }
  /// [groups, coarse channels, channels in x kernel]
  Ref asMatrix(Ref weight) {
    return g.reshape(g.cast(weight, compute), {groups, coarseChannels / groups, perGroup()});
  }

  Ref getCoarse(Ref fine, Ref weight) {
    Ref product = buildGemm(g, asMatrix(weight), asWindows(fine));
    SmallVector<int64_t> shape = {coarseChannels, batch}, order = {1, 0};
    for (size_t dim = 0; dim < p.rank(); ++dim) {
      shape.push_back(coarseShape[dim + 2]);
      order.push_back(static_cast<int64_t>(dim) + 2);
    }
    return g.permute(g.reshape(product, shape), order);
  }
  Ref getFine(Ref rows, Ref weight) {
    Ref product = buildGemm(g, g.permute(asMatrix(weight), {0, 2, 1}), rows);
    return foldWindows(g, product, p, batch, fineChannels, /*batchFirst=*/false);
  }
  Ref getWeight(Ref rows, Ref fine) {
    return g.reshape(buildGemm(g, rows, g.permute(asWindows(fine), {0, 2, 1})), weightShape);
  }
};

LogicalResult checkType(Operation *op, Type type) {
  if (getComputeType(type).isF32() || type.isF64())
    return success();
  return op->emitOpError("has no kernel for element type ") << type;
}

LogicalResult lowerConvolution(GraphBuilder &g, aten::ConvolutionOp op) {
  RankedTensorType type = typeOf(op.getResult());
  if (failed(checkType(op, type.getElementType())))
    return failure();
  Ref input = g.get(op.getInput()), weight = g.get(op.getWeight()), out;
  if (op.getTransposed()) {
    Convolution c(g, op, type.getShape(), input.shape, weight);
    out = c.getFine(c.asRows(input), weight);
  } else {
    Convolution c(g, op, input.shape, type.getShape(), weight);
    out = c.getCoarse(input, weight);
  }
  Type compute = out.getElementType();
  if (op.getBias()) {
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape[1] = type.getDimSize(1);
    Ref bias = g.reshape(g.cast(g.get(op.getBias()), compute), shape);
    out = g.pointwise({out, bias}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      return ScalarBuilder(b, compute).add(args[0], args[1]);
    });
  }
  g.set(op.getResult(), g.cast(out, type.getElementType()));
  return success();
}

LogicalResult lowerConvolutionBackward(GraphBuilder &g, aten::ConvolutionBackwardOp op) {
  if (failed(checkType(op, typeOf(op.getWeight()).getElementType())))
    return failure();
  Ref grad = g.get(op.getGradOutput()), input = g.get(op.getInput()), weight = g.get(op.getWeight());
  bool transposed = op.getTransposed();
  const Ref &fine = transposed ? grad : input, &coarse = transposed ? input : grad;
  Convolution c(g, op, fine.shape, coarse.shape, weight);
  auto set = [&](Value result, Ref value) { g.set(result, g.cast(value, typeOf(result).getElementType())); };
  std::optional<Ref> rows;
  if (op.getGradWeight() || (op.getGradInput() && !transposed))
    rows = c.asRows(coarse);
  if (Value result = op.getGradInput())
    set(result, transposed ? c.getCoarse(grad, weight) : c.getFine(*rows, weight));
  if (Value result = op.getGradWeight())
    set(result, c.getWeight(*rows, fine));
  if (Value result = op.getGradBias()) {
    SmallVector<int64_t> dims = {0};
    for (size_t dim = 0; dim < c.p.rank(); ++dim)
      dims.push_back(static_cast<int64_t>(dim) + 2);
    set(result, g.reduce(kernel::ReduceKind::Add, g.cast(grad, c.compute), dims, /*keepDims=*/false));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Max pools
//===----------------------------------------------------------------------===//

/// Value and index of the largest element: kernel element by kernel element, as PyTorch goes through them.
void lowerMaxPool(GraphBuilder &g, Operation *op) {
  Value out = op->getResult(0), indices = op->getResult(1);
  Ref self = g.get(op->getOperand(0));
  RankedTensorType outType = typeOf(out);
  Type type = outType.getElementType(), compute = getComputeType(type), i64 = typeOf(indices).getElementType();
  Problem p(op, op->getAttrOfType<DenseI64ArrayAttr>("kernel_size").asArrayRef(),
            ArrayRef<int64_t>(self.shape).drop_front(2), outType.getShape().drop_front(2));
  Strided image(g, self);
  SmallVector<int64_t> shape(outType.getShape());
  SmallVector<Ref> positions;
  for (size_t dim = 0; dim < p.rank(); ++dim)
    positions.push_back(positionsAlong(g, i64, p.counts[dim], dim + 2, shape.size(), -p.windows.padding[dim],
                                       p.windows.stride[dim]));
  auto taps = p.taps();
  std::optional<Ref> value, index;
  for (size_t first = 0; first < taps.size(); first += kTapsPerNode) {
    auto chunk = llvm::to_vector(ArrayRef(taps).slice(first, std::min(kTapsPerNode, taps.size() - first)));
    SmallVector<Ref> inputs = positions;
    for (ArrayRef<int64_t> tap : chunk) {
      SmallVector<Mode> modes = {{shape[0], image.strides[0]}, {shape[1], image.strides[1]}};
      int64_t offset = 0;
      for (size_t dim = 0; dim < p.rank(); ++dim) {
        modes.push_back({shape[dim + 2], image.strides[dim + 2] * p.windows.stride[dim]});
        offset += (tap[dim] * p.windows.dilation[dim] - p.windows.padding[dim]) * image.strides[dim + 2];
      }
      inputs.push_back(image.view(modes, offset, shape, /*guarded=*/true));
    }
    bool continues = value.has_value();
    if (continues)
      llvm::append_range(inputs, SmallVector<Ref>{*value, *index});
    auto body = [=](ImplicitLocOpBuilder &b, ValueRange args, bool wantsIndex) {
      ScalarBuilder s(b, compute), at(b, i64);
      Value best = continues ? castScalar(b, args[args.size() - 2], compute) : s.constant(-INFINITY);
      Value where = continues ? args.back() : at.constant(-1);
      for (auto [i, tap] : llvm::enumerate(chunk)) {
        Value element = castScalar(b, args[p.rank() + i], compute), inside, plane;
        for (size_t dim = 0; dim < p.rank(); ++dim) {
          Value position = at.add(args[dim], at.constant(static_cast<double>(tap[dim] * p.windows.dilation[dim])));
          Value here = isBetween(at, position, 0, p.image[dim]);
          inside = inside ? Value(arith::AndIOp::create(b, inside, here)) : here;
          plane = plane ? at.add(at.mul(plane, at.constant(static_cast<double>(p.image[dim]))), position) : position;
        }
        Value isFirst = at.compare("lt", where, at.constant(0));
        Value isNaN = s.compare("ne", element, element);
        Value wins = arith::OrIOp::create(b, s.compare("gt", element, best), arith::OrIOp::create(b, isFirst, isNaN));
        wins = arith::AndIOp::create(b, inside, wins);
        best = s.select(wins, element, best);
        where = at.select(wins, plane, where);
      }
      return wantsIndex ? where : castScalar(b, best, type);
    };
    Ref nextValue =
        g.pointwise(inputs, type, [=](ImplicitLocOpBuilder &b, ValueRange args) { return body(b, args, false); });
    index = g.pointwise(inputs, i64, [=](ImplicitLocOpBuilder &b, ValueRange args) { return body(b, args, true); });
    value = nextValue;
  }
  g.set(out, *value);
  g.set(indices, *index);
}

/// The gradients of the windows in which an element is the largest.
void lowerMaxPoolBackward(GraphBuilder &g, Operation *op) {
  Value result = op->getResult(0);
  Ref grad = g.get(op->getOperand(0)), indices = g.get(op->getOperand(2));
  RankedTensorType type = typeOf(result);
  Type compute = getComputeType(type.getElementType()), i64 = indices.getElementType();
  Problem p(op, op->getAttrOfType<DenseI64ArrayAttr>("kernel_size").asArrayRef(), type.getShape().drop_front(2),
            ArrayRef<int64_t>(grad.shape).drop_front(2));
  Strided gradients(g, g.cast(grad, compute)), places(g, indices);
  ImageSpace space(g, p, type.getDimSize(0), type.getDimSize(1), i64);
  auto readTap = [&](const Strided &windows, ArrayRef<int64_t> tap) {
    return space.read(windows, windows.strides[0], windows.strides[1], ArrayRef<int64_t>(windows.strides).drop_front(2),
                      tap, 0);
  };
  Ref sum = sumOverTaps(
      g, space, p, compute,
      [&](ArrayRef<int64_t> tap, int64_t) { return SmallVector<Ref>{readTap(gradients, tap), readTap(places, tap)}; },
      [=](ScalarBuilder &s, ValueRange values, ValueRange positions) {
        ScalarBuilder at(s.b, i64);
        return s.select(at.compare("eq", values[1], space.getPlaneIndex(at, positions)), values[0], s.constant(0));
      });
  g.set(result, g.cast(sum, type.getElementType()));
}

} // namespace

Lowered lowerWindowOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::ConvolutionOp convolution) -> Lowered { return lowerConvolution(g, convolution); })
      .Case([&](aten::ConvolutionBackwardOp backward) -> Lowered { return lowerConvolutionBackward(g, backward); })
      .Case<aten::MaxPool2dWithIndicesOp, aten::MaxPool3dWithIndicesOp>([&](Operation *pool) -> Lowered {
        lowerMaxPool(g, pool);
        return success();
      })
      .Case<aten::MaxPool2dWithIndicesBackwardOp, aten::MaxPool3dWithIndicesBackwardOp>(
          [&](Operation *pool) -> Lowered {
            lowerMaxPoolBackward(g, pool);
            return success();
          })
      .Case([&](aten::Im2colOp columns) -> Lowered {
        Ref image = g.get(columns.getSelf());
        RankedTensorType type = typeOf(columns.getResult());
        Windows w{{}, llvm::SmallVector<int64_t, 3>(columns.getStride()),
                  llvm::SmallVector<int64_t, 3>(columns.getPadding()),
                  llvm::SmallVector<int64_t, 3>(columns.getDilation())};
        w.kernel.assign(columns.getKernelSize().begin(), columns.getKernelSize().end());
        Problem p(op, columns.getKernelSize(), ArrayRef<int64_t>(image.shape).drop_front(2),
                  {w.count(0, image.shape[2]), w.count(1, image.shape[3])});
        g.set(columns.getResult(), g.reshape(buildWindows(g, image, p, /*batchFirst=*/true), type.getShape()));
        return success();
      })
      .Case([&](aten::Col2imOp fold) -> Lowered {
        RankedTensorType type = typeOf(fold.getResult());
        Windows w{{}, llvm::SmallVector<int64_t, 3>(fold.getStride()), llvm::SmallVector<int64_t, 3>(fold.getPadding()),
                  llvm::SmallVector<int64_t, 3>(fold.getDilation())};
        w.kernel.assign(fold.getKernelSize().begin(), fold.getKernelSize().end());
        Problem p(op, fold.getKernelSize(), type.getShape().drop_front(2),
                  {w.count(0, type.getDimSize(2)), w.count(1, type.getDimSize(3))});
        Type compute = getComputeType(type.getElementType());
        Ref image = foldWindows(g, g.cast(g.get(fold.getSelf()), compute), p, type.getDimSize(0), type.getDimSize(1),
                                /*batchFirst=*/true);
        g.set(fold.getResult(), g.cast(image, type.getElementType()));
        return success();
      })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
