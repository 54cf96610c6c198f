//===- NormalizeSampling.cpp - Average pools and upsampling as products ---===//
//
// [Note: resampling]
// Average pools, adaptive average pools and nearest or linear interpolation compute each spatial dim alone: out = A in,
// with a matrix A[out, in] of weights that follow from positions alone. So they are a product with A along each spatial
// dim, and their gradients products with the transposed A: no op of their own, and any size works. Where windows tile
// the dim evenly, views and a mean do without products.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "Normalize.h"

#include <cmath>

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

namespace {
/// One op: makes the weights [out, in] of spatial dim `dim`, as floats.
using Weights = function_ref<Value(Arithmetic &numbers, int64_t dim, int64_t out, int64_t in)>;
} // namespace

static SmallVector<int64_t> integers(Call &call, StringRef name) {
  BoundArg *arg = call.find(name);
  if (arg && arg->literal.kind == Kind::integer)
    return {arg->literal.integer};
  return arg ? SmallVector<int64_t>(arg->literal.integers.begin(), arg->literal.integers.end())
             : SmallVector<int64_t>();
}

/// `value` with dim `dim` replaced by matrix times it.
static Value applyAlong(Emitter &emitter, Arithmetic &a, Value value, int64_t dim, Value transposedMatrix) {
  int64_t rank = typeOf(value).getRank();
  // The dim goes last and comes back.
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  order.erase(order.begin() + dim);
  order.push_back(dim);
  SmallVector<int64_t> inverse(rank);
  for (auto [to, from] : llvm::enumerate(order))
    inverse[from] = to;
  value = emitter.permute(value, order);
  SmallVector<int64_t> shape(typeOf(value).getShape());
  Value rows = emitter.view(value, {typeOf(value).getNumElements() / shape.back(), shape.back()});
  shape.back() = typeOf(transposedMatrix).getDimSize(1);
  return emitter.permute(emitter.view(a.product(rows, transposedMatrix), shape), inverse);
}

/// The op (or with `backward` its gradient) on the last `rank` dims, between sizes `from` and `to` of forward's input
/// and output.
static Value resample(Emitter &emitter, Value value, Type resultType, ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                      bool backward, Weights weights) {
  Arithmetic a(emitter, Arithmetic::computeType(typeOf(value).getElementType()));
  Arithmetic numbers(emitter, emitter.builder.getF64Type());
  int64_t first = typeOf(value).getRank() - static_cast<int64_t>(from.size());
  for (auto [dim, in] : llvm::enumerate(from)) {
    Value matrix = weights(numbers, dim, to[dim], in);
    if (!matrix)
      continue;
    matrix = emitter.cast(matrix, Arithmetic::computeType(typeOf(value).getElementType()));
    value = applyAlong(emitter, a, value, first + static_cast<int64_t>(dim),
                       backward ? matrix : emitter.permute(matrix, {1, 0}));
  }
  return emitter.cast(value, cast<RankedTensorType>(resultType).getElementType());
}

/// The last `rank` sizes of a value.
static SmallVector<int64_t> spatial(Value value, size_t rank) {
  return SmallVector<int64_t>(typeOf(value).getShape().take_back(rank));
}

//===----------------------------------------------------------------------===//
// Average pools
//===----------------------------------------------------------------------===//

static LogicalResult emitAvgPool(Emitter &emitter, Call &call, Results &results) {
  bool backward = StringRef(call.op).ends_with("_backward");
  SmallVector<int64_t> kernel = integers(call, "kernel_size"), stride = integers(call, "stride"),
                       padding = integers(call, "padding");
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  auto fill = [&](SmallVector<int64_t> &list, int64_t otherwise) {
    if (list.empty())
      list.push_back(otherwise);
    list.resize(rank, list.front());
  };
  fill(kernel, 1);
  if (stride.empty())
    stride = kernel;
  fill(stride, 1);
  fill(padding, 0);
  bool countsPadding = call.boolean("count_include_pad");
  int64_t divisor = call.integer("divisor_override", 0);
  RankedTensorType result = call.resultTypes[0];
  Value self = call.value("self"), value = backward ? call.value("grad_output") : self;
  SmallVector<int64_t> from = spatial(self, rank);
  SmallVector<int64_t> to(backward ? spatial(value, rank) : SmallVector<int64_t>(result.getShape().take_back(rank)));

  // 1 where element i is in window o, over its number of elements.
  auto weights = [&](Arithmetic &numbers, int64_t dim, int64_t out, int64_t in) {
    Value first = numbers.add(numbers.mul(numbers.positions(out, 0, 2), static_cast<double>(stride[dim])),
                              static_cast<double>(-padding[dim]));
    Value end = numbers.add(first, static_cast<double>(kernel[dim])), i = numbers.positions(in, 1, 2);
    Value inside = numbers.mul(numbers.compare("ge.Tensor", i, first), numbers.compare("lt.Tensor", i, end));
    if (divisor != 0)
      return dim == 0 ? numbers.div(inside, static_cast<double>(divisor)) : inside;
    // Windows end where the padded image does.
    Value count = countsPadding
                      ? numbers.sub(numbers.clamp(end, std::nullopt, static_cast<double>(in + padding[dim])), first)
                      : numbers.sum(inside, {1}, /*keepDims=*/true);
    return numbers.div(inside, count);
  };

  bool tiles = kernel == stride && divisor == 0 && !backward &&
               llvm::all_of(padding, [](int64_t p) { return p == 0; });
  for (size_t dim = 0; dim < rank; ++dim)
    tiles &= to[dim] * kernel[dim] == from[dim];
  if (tiles) {
    SmallVector<int64_t> shape(typeOf(value).getShape().drop_back(rank)), dims;
    for (size_t dim = 0; dim < rank; ++dim) {
      shape.append({to[dim], kernel[dim]});
      dims.push_back(static_cast<int64_t>(shape.size()) - 1);
    }
    Value windows = emitter.view(value, shape);
    results.push_back(emitter.createValue("mean.dim", windows,
                                          {emitter.named("dim", emitter.builder.getDenseI64ArrayAttr(dims)),
                                           emitter.named("keepdim", emitter.builder.getBoolAttr(false))},
                                          result));
    return success();
  }
  results.push_back(resample(emitter, value, result, from, to, backward, weights));
  return success();
}

/// Window o has the elements from floor(o in / out) to ceil((o + 1) in / out).
static LogicalResult emitAdaptiveAvgPool(Emitter &emitter, Call &call, Results &results) {
  bool backward = StringRef(call.op).ends_with("_backward");
  size_t rank = StringRef(call.op).contains("3d") ? 3 : 2;
  RankedTensorType result = call.resultTypes[0];
  Value self = call.value("self"), value = backward ? call.value("grad_output") : self;
  SmallVector<int64_t> from = spatial(self, rank);
  SmallVector<int64_t> to(backward ? spatial(value, rank) : SmallVector<int64_t>(result.getShape().take_back(rank)));
  auto weights = [&](Arithmetic &numbers, int64_t, int64_t out, int64_t in) {
    if (out == in)
      return Value();
    // In whole numbers, which f64 holds exactly: o in < (i + 1) out and i out < (o + 1) in.
    Value o = numbers.positions(out, 0, 2), i = numbers.positions(in, 1, 2);
    auto dOut = static_cast<double>(out), dIn = static_cast<double>(in);
    Value begins = numbers.compare("lt.Tensor", numbers.mul(o, dIn), numbers.mul(numbers.add(i, 1), dOut));
    Value ends = numbers.compare("lt.Tensor", numbers.mul(i, dOut), numbers.mul(numbers.add(o, 1), dIn));
    Value inside = numbers.mul(begins, ends);
    return numbers.div(inside, numbers.sum(inside, {1}, /*keepDims=*/true));
  };
  results.push_back(resample(emitter, value, result, from, to, backward, weights));
  return success();
}

//===----------------------------------------------------------------------===//
// Interpolation
//===----------------------------------------------------------------------===//

/// The scale the user gave for spatial dim `dim`, if any.
static std::optional<double> givenScale(Call &call, size_t dim, size_t rank) {
  static constexpr StringRef names[] = {"scales_d", "scales_h", "scales_w"};
  BoundArg *arg = call.find(rank == 1 ? StringRef("scales") : names[3 - rank + dim]);
  if (!arg || arg->isNone())
    return std::nullopt;
  return arg->number();
}

static size_t rankOf(Call &call) {
  StringRef op = call.op;
  return op.contains("1d") ? 1 : op.contains("2d") ? 2 : 3;
}

/// Forward's input and output sizes of an upsample op or its gradient.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> sampleSizes(Call &call, Value value, bool backward,
                                                                         size_t rank) {
  if (!backward)
    return {spatial(value, rank), SmallVector<int64_t>(call.resultTypes[0].getShape().take_back(rank))};
  return {SmallVector<int64_t>(call.resultTypes[0].getShape().take_back(rank)), spatial(value, rank)};
}

/// Source elements per output element.
static double sourceScale(Call &call, int64_t dim, int64_t out, int64_t in) {
  if (call.boolean("align_corners"))
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  std::optional<double> given = givenScale(call, dim, rankOf(call));
  return given && *given > 0 ? 1 / *given : static_cast<double>(in) / static_cast<double>(out);
}

/// o * scale + offset of each output element: sources lie corner on corner, or center on center.
static Value sourcePositions(Arithmetic &numbers, Call &call, int64_t dim, int64_t out, int64_t in) {
  Value o = numbers.positions(out, 0, 2);
  double scale = sourceScale(call, dim, out, in);
  return call.boolean("align_corners") ? numbers.mul(o, scale)
                                       : numbers.add(numbers.mul(numbers.add(o, 0.5), scale), -0.5);
}

/// An upsample op or its gradient, by what each output element takes of the source elements.
static LogicalResult emitInterpolation(Emitter &emitter, Call &call, Results &results, Weights weights) {
  bool backward = StringRef(call.op).ends_with("_backward");
  Value value = backward ? call.value("grad_output") : call.value("self");
  auto [from, to] = sampleSizes(call, value, backward, rankOf(call));
  results.push_back(resample(emitter, value, call.resultTypes[0], from, to, backward, weights));
  return success();
}

/// 1 - |distance|, 0 from 1 on.
static Value triangle(Arithmetic &a, Value distance) {
  return a.clamp(a.add(a.mul(a.unary("abs", distance), -1), 1), 0, std::nullopt);
}

/// Elements at distance below 1 of the source position o * scale + offset, by 1 - distance.
static LogicalResult emitLinear(Emitter &emitter, Call &call, Results &results) {
  return emitInterpolation(emitter, call, results, [&](Arithmetic &numbers, int64_t dim, int64_t out, int64_t in) {
    Value source = numbers.clamp(sourcePositions(numbers, call, dim, out, in), 0, static_cast<double>(in - 1));
    return triangle(numbers, numbers.sub(source, numbers.positions(in, 1, 2)));
  });
}

/// Keys' cubic convolution of a distance, 0 from 2 on; `steepness` is its a.
static Value cubic(Arithmetic &a, Value distance, double steepness) {
  Value d = a.unary("abs", distance), square = a.mul(d, d);
  Value near = a.add(a.mul(a.add(a.mul(d, steepness + 2), -(steepness + 3)), square), 1);
  // steepness (d^3 - 5 d^2 + 8 d - 4)
  Value far = a.mul(a.add(a.mul(a.add(a.mul(a.add(d, -5), d), 8), d), -4), steepness);
  Value zero = a.constant(0);
  far = a.where(a.compare("lt.Tensor", d, a.constant(2)), far, zero);
  return a.where(a.compare("le.Tensor", d, a.constant(1)), near, far);
}

/// The four elements around the source position, those beyond the border being the last ones.
static LogicalResult emitCubic(Emitter &emitter, Call &call, Results &results) {
  return emitInterpolation(emitter, call, results, [&](Arithmetic &numbers, int64_t dim, int64_t out, int64_t in) {
    Value source = sourcePositions(numbers, call, dim, out, in);
    Value first = numbers.unary("floor", source), matrix;
    for (int64_t tap = -1; tap <= 2; ++tap) {
      Value at = numbers.add(first, static_cast<double>(tap));
      Value weight = cubic(numbers, numbers.sub(source, at), -0.75);
      Value isAt =
          numbers.compare("eq.Tensor", numbers.clamp(at, 0, static_cast<double>(in - 1)), numbers.positions(in, 1, 2));
      Value part = numbers.where(isAt, weight, numbers.constant(0));
      matrix = matrix ? numbers.add(matrix, part) : part;
    }
    return matrix;
  });
}

/// A filter as wide as the source elements of one output element, at least one; its weights add up to 1.
static LogicalResult emitAntialiased(Emitter &emitter, Call &call, Results &results) {
  bool isCubic = StringRef(call.op).contains("bicubic");
  return emitInterpolation(emitter, call, results, [&](Arithmetic &numbers, int64_t dim, int64_t out, int64_t in) {
    double scale = sourceScale(call, dim, out, in);
    Value center = numbers.mul(numbers.add(numbers.positions(out, 0, 2), 0.5), scale);
    Value distance = numbers.sub(numbers.add(numbers.positions(in, 1, 2), 0.5), center);
    distance = numbers.div(distance, std::max(scale, 1.0));
    Value weight = isCubic ? cubic(numbers, distance, -0.5) : triangle(numbers, distance);
    return numbers.div(weight, numbers.sum(weight, {1}, /*keepDims=*/true));
  });
}

/// PyTorch's source of output `o` (aten/src/ATen/native/UpSample.h), computed in f32 as there.
static int64_t nearestSource(int64_t o, int64_t in, int64_t out, std::optional<double> given, bool exact) {
  if (!exact && out == in)
    return o;
  if (!exact && out == 2 * in)
    return o / 2;
  float scale = given && *given > 0 ? static_cast<float>(1 / *given) : static_cast<float>(in) / static_cast<float>(out);
  float position = exact ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
  return std::min(static_cast<int64_t>(std::floor(position)), in - 1);
}

static LogicalResult emitNearest(Emitter &emitter, Call &call, Results &results) {
  bool backward = StringRef(call.op).ends_with("_backward"), exact = StringRef(call.op).contains("exact");
  size_t rank = rankOf(call);
  Value value = backward ? call.value("grad_output") : call.value("self");
  auto [from, to] = sampleSizes(call, value, backward, rank);
  SmallVector<SmallVector<int64_t>> sources(rank);
  bool repeats = true; // every element the same number of times
  for (size_t dim = 0; dim < rank; ++dim)
    for (int64_t o = 0; o < to[dim]; ++o) {
      sources[dim].push_back(nearestSource(o, from[dim], to[dim], givenScale(call, dim, rank), exact));
      repeats &= to[dim] % from[dim] == 0 && sources[dim].back() == o / (to[dim] / from[dim]);
    }
  if (repeats) {
    // [.., in, times, ..]: repeated, or summed over the repetitions.
    SmallVector<int64_t> one(typeOf(value).getShape().drop_back(rank)), all = one, dims;
    for (size_t dim = 0; dim < rank; ++dim) {
      one.append({from[dim], 1});
      all.append({from[dim], to[dim] / from[dim]});
      dims.push_back(static_cast<int64_t>(all.size()) - 1);
    }
    RankedTensorType result = call.resultTypes[0];
    Arithmetic a(emitter, result.getElementType());
    if (backward)
      results.push_back(emitter.view(a.sum(emitter.view(value, all), dims), result.getShape()));
    else
      results.push_back(emitter.view(emitter.expand(emitter.view(value, one), all), result.getShape()));
    return success();
  }
  auto weights = [&](Arithmetic &numbers, int64_t dim, int64_t out, int64_t in) {
    auto type = RankedTensorType::get({out, 1}, emitter.builder.getI64Type());
    Value source = emitter.createValue(
        "constant", {}, emitter.named("value", DenseElementsAttr::get(type, ArrayRef<int64_t>(sources[dim]))), type);
    Value isSource = numbers.compare("eq.Tensor", source, numbers.positions(in, 1, 2));
    return emitter.cast(isSource, emitter.builder.getF64Type());
  };
  results.push_back(resample(emitter, value, call.resultTypes[0], from, to, backward, weights));
  return success();
}

static LogicalResult refuseSampling(Emitter &emitter, Call &call, Results &) {
  return emitter.error("'") << call.op << "' is not supported; interpolate with mode nearest, nearest-exact, linear, "
                            << "bilinear, trilinear, bicubic or area";
}

void spmd::normalizeSampling(NormalizerTable &table) {
  for (std::string tail : {"", "_backward"}) {
    // Pools know the image by `self`, interpolation by sizes.
    SmallVector<StringRef, 2> pooled = {"self"}, sampled = {"self"};
    if (!tail.empty()) {
      pooled.push_back("grad_output");
      sampled = {"grad_output"};
    }
    for (std::string dims : {"2d", "3d"}) {
      table["avg_pool" + dims + tail] = {&emitAvgPool, pooled};
      table["_adaptive_avg_pool" + dims + tail] = {&emitAdaptiveAvgPool, pooled};
    }
    for (std::string op : {"upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"})
      table[op + tail] = {&emitLinear, sampled};
    for (std::string dims : {"1d", "2d", "3d"}) {
      table["upsample_nearest" + dims + tail] = {&emitNearest, sampled};
      table["_upsample_nearest_exact" + dims + tail] = {&emitNearest, sampled};
    }
    table["upsample_bicubic2d" + tail] = {&emitCubic, sampled};
    for (std::string op : {"_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"})
      table[op + tail] = {&emitAntialiased, sampled};
    for (std::string op : {"grid_sampler_2d", "grid_sampler_3d"})
      table[op + tail] = &refuseSampling;
  }
}
