//===- Tensor.cpp - dense host tensors for the interpreter ----------------===//

#include "spmd/Interpreter/Tensor.h"
#include "spmd/Interpreter/Inputs.h"
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace spmd::interp {

std::optional<DType> getDType(Type type) {
  if (type.isF64())
    return DType::f64;
  if (type.isF32())
    return DType::f32;
  if (type.isF16())
    return DType::f16;
  if (type.isBF16())
    return DType::bf16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  if (integer.isUnsigned())
    return integer.getWidth() == 8 ? std::optional(DType::u8) : std::nullopt;
  switch (integer.getWidth()) {
  case 64:
    return DType::i64;
  case 32:
    return DType::i32;
  case 16:
    return DType::i16;
  case 8:
    return DType::i8;
  case 1:
    return DType::i1;
  default:
    return std::nullopt;
  }
}

llvm::StringRef toString(DType dtype) { return runtime::nameOf(toRuntime(dtype)); }

bool isFloating(DType dtype) { return dtype <= DType::bf16; }

/// Rounds to a binary format with `bits` explicit mantissa bits whose smallest
/// normal exponent is `minExponent` and whose largest is `maxExponent`.
static double roundToFormat(double value, int bits, int minExponent, int maxExponent) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::max(std::ilogb(value), minExponent);
  double quantum = std::ldexp(1.0, exponent - bits);
  double result = std::nearbyint(value / quantum) * quantum;
  if (std::fabs(result) >= std::ldexp(1.0, maxExponent + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return result;
}

double roundTo(DType dtype, double value) {
  switch (dtype) {
  case DType::f32:
    return static_cast<float>(value);
  case DType::f16:
    return roundToFormat(value, 10, -14, 15);
  case DType::bf16:
    return roundToFormat(value, 7, -126, 127);
  default:
    return value;
  }
}

int64_t wrapTo(DType dtype, int64_t value) {
  switch (dtype) {
  case DType::i32:
    return static_cast<int32_t>(value);
  case DType::i16:
    return static_cast<int16_t>(value);
  case DType::i8:
    return static_cast<int8_t>(value);
  case DType::u8:
    return static_cast<uint8_t>(value);
  case DType::i1:
    return value != 0;
  default:
    return value;
  }
}

int64_t numElements(ShapeRef shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor::Tensor(DType dtype, ShapeRef shape) : present(true), type(dtype), dims(shape) {
  if (interp::isFloating(dtype))
    floats = std::make_shared<std::vector<double>>(numel());
  else
    ints = std::make_shared<std::vector<int64_t>>(numel());
}

Tensor::Tensor(DType dtype, ShapeRef shape, std::vector<double> values)
    : present(true), type(dtype), dims(shape), floats(std::make_shared<std::vector<double>>(std::move(values))) {
  assert(interp::isFloating(dtype) && static_cast<int64_t>(floats->size()) == numel());
}

Tensor::Tensor(DType dtype, ShapeRef shape, std::vector<int64_t> values)
    : present(true), type(dtype), dims(shape), ints(std::make_shared<std::vector<int64_t>>(std::move(values))) {
  assert(!interp::isFloating(dtype) && static_cast<int64_t>(ints->size()) == numel());
}

Tensor Tensor::full(DType dtype, ShapeRef shape, double value) {
  Tensor result(dtype, shape);
  for (int64_t i = 0, e = result.numel(); i < e; ++i)
    result.set(i, value);
  return result;
}

Tensor Tensor::scalar(DType dtype, double value) { return full(dtype, {}, value); }

/// Truncation as a C cast does it, but defined for every input.
static int64_t truncateToInteger(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 9223372036854775808.0)
    return std::numeric_limits<int64_t>::max();
  if (value < -9223372036854775808.0)
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

void Tensor::set(int64_t i, double value) {
  if (floats)
    (*floats)[i] = value;
  else if (type == DType::i1)
    (*ints)[i] = value != 0;
  else
    (*ints)[i] = wrapTo(type, truncateToInteger(value));
}

Tensor Tensor::reshaped(ShapeRef shape) const {
  assert(numElements(shape) == numel() && "reshape changes the element count");
  Tensor result = *this;
  result.dims.assign(shape.begin(), shape.end());
  return result;
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == type)
    return *this;
  if (floats && interp::isFloating(dtype)) {
    Tensor result = *this;
    result.type = dtype;
    return result;
  }
  Tensor result(dtype, dims);
  for (int64_t i = 0, e = numel(); i < e; ++i) {
    if (ints && result.ints)
      (*result.ints)[i] = wrapTo(dtype, (*ints)[i]);
    else
      result.set(i, at(i));
  }
  return result;
}

Tensor Tensor::rounded() const {
  if (!floats || type == DType::f64)
    return *this;
  Tensor result(type, dims);
  for (int64_t i = 0, e = numel(); i < e; ++i)
    (*result.floats)[i] = roundTo(type, (*floats)[i]);
  return result;
}

std::shared_ptr<const std::vector<double>> Tensor::asReals() const {
  if (floats)
    return floats;
  return std::make_shared<std::vector<double>>(ints->begin(), ints->end());
}

bool Tensor::identical(const Tensor &other) const {
  if (type != other.type || ShapeRef(dims) != ShapeRef(other.dims))
    return false;
  if (ints)
    return ints == other.ints || *ints == *other.ints;
  return floats == other.floats ||
         std::memcmp(floats->data(), other.floats->data(), floats->size() * sizeof(double)) == 0;
}

Shape contiguousStrides(ShapeRef shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (int64_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

/// Calls `visit(linear index, strided index)` over `shape` in row-major order.
template <typename Visit>
static void forEachStrided(ShapeRef shape, ShapeRef strides, int64_t offset, Visit visit) {
  int64_t count = numElements(shape);
  if (count == 0)
    return;
  if (shape.empty())
    return visit(0, offset);
  int64_t last = shape.size() - 1, inner = shape[last], step = strides[last];
  Shape index(shape.size(), 0);
  for (int64_t linear = 0; linear < count; linear += inner) {
    for (int64_t i = 0; i < inner; ++i)
      visit(linear + i, offset + i * step);
    for (int64_t d = last - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d])
        break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

Tensor gatherStrided(const Tensor &source, ShapeRef shape, ShapeRef strides, int64_t offset) {
  Tensor result(source.dtype(), shape);
  if (source.isFloating()) {
    const double *from = source.reals().data();
    double *to = result.realData();
    forEachStrided(shape, strides, offset, [&](int64_t i, int64_t j) { to[i] = from[j]; });
  } else {
    const int64_t *from = source.integers().data();
    int64_t *to = result.integerData();
    forEachStrided(shape, strides, offset, [&](int64_t i, int64_t j) { to[i] = from[j]; });
  }
  return result;
}

void scatterStrided(Tensor &target, const Tensor &source, ShapeRef strides, int64_t offset) {
  assert(source.isFloating() == target.isFloating());
  if (source.isFloating()) {
    const double *from = source.reals().data();
    double *to = target.realData();
    forEachStrided(source.shape(), strides, offset, [&](int64_t i, int64_t j) { to[j] = from[i]; });
  } else {
    const int64_t *from = source.integers().data();
    int64_t *to = target.integerData();
    forEachStrided(source.shape(), strides, offset, [&](int64_t i, int64_t j) { to[j] = from[i]; });
  }
}

std::optional<Shape> broadcastShapes(ShapeRef a, ShapeRef b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a);
  int64_t lead = a.size() - b.size();
  for (int64_t i = 0, e = b.size(); i < e; ++i) {
    int64_t &size = result[lead + i];
    if (size == 1)
      size = b[i];
    else if (b[i] != 1 && b[i] != size)
      return std::nullopt;
  }
  return result;
}

Tensor broadcastTo(const Tensor &source, ShapeRef shape) {
  if (source.shape() == shape)
    return source;
  int64_t lead = shape.size() - source.rank();
  Shape own = contiguousStrides(source.shape()), strides(shape.size(), 0);
  for (int64_t i = 0; i < source.rank(); ++i)
    strides[lead + i] = source.dim(i) == 1 ? 0 : own[i];
  return gatherStrided(source, shape, strides);
}

} // namespace spmd::interp
