//===- Reduce.cpp ---------------------------------------------------------===//

#include "spmd/Runtime/Core/Reduce.h"
#include "spmd/Runtime/Core/HalfFloat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace spmd::runtime;

namespace {

// A block of accumulators stays in the first-level cache while the inputs
// stream by, and lets `out` be one of the inputs.
constexpr int64_t kBlock = 2048;

struct Sum {
  template <typename T>
  static T first(T x) {
    return x;
  }
  template <typename T>
  static T next(T a, T x) {
    return static_cast<T>(a + x);
  }
  template <typename T>
  static T last(T a) {
    return a;
  }
};
// A NaN of any rank stays a NaN.
struct Max {
  template <typename T>
  static T first(T x) {
    return x;
  }
  template <typename T>
  static T next(T a, T x) {
    return x > a || x != x ? x : a;
  }
  template <typename T>
  static T last(T a) {
    return a;
  }
};
struct Min {
  template <typename T>
  static T first(T x) {
    return x;
  }
  template <typename T>
  static T next(T a, T x) {
    return x < a || x != x ? x : a;
  }
  template <typename T>
  static T last(T a) {
    return a;
  }
};
struct Norm2 {
  template <typename T>
  static T first(T x) {
    return static_cast<T>(x * x);
  }
  template <typename T>
  static T next(T a, T x) {
    return static_cast<T>(a + x * x);
  }
  template <typename T>
  static T last(T a) {
    return static_cast<T>(std::sqrt(a));
  }
};

template <typename Stored, typename Accumulator, typename Op>
void reduce(const void *const *inputs, int64_t numInputs, void *out, int64_t count) {
  Accumulator block[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t size = std::min(kBlock, count - begin);
    auto *input = static_cast<const Stored *>(inputs[0]) + begin;
    for (int64_t i = 0; i < size; ++i)
      block[i] = Op::first(static_cast<Accumulator>(input[i]));
    for (int64_t rank = 1; rank < numInputs; ++rank) {
      input = static_cast<const Stored *>(inputs[rank]) + begin;
      for (int64_t i = 0; i < size; ++i)
        block[i] = Op::next(block[i], static_cast<Accumulator>(input[i]));
    }
    auto *result = static_cast<Stored *>(out) + begin;
    for (int64_t i = 0; i < size; ++i)
      result[i] = static_cast<Stored>(Op::last(block[i]));
  }
}

template <typename Op>
void reduceTyped(DType dtype, const void *const *inputs, int64_t numInputs, void *out, int64_t count) {
  switch (dtype) {
  case DType::F32:
    return reduce<float, float, Op>(inputs, numInputs, out, count);
  case DType::F64:
    return reduce<double, double, Op>(inputs, numInputs, out, count);
  case DType::F16:
    return reduce<Float16, float, Op>(inputs, numInputs, out, count);
  case DType::BF16:
    return reduce<BFloat16, float, Op>(inputs, numInputs, out, count);
  case DType::I64:
    return reduce<int64_t, int64_t, Op>(inputs, numInputs, out, count);
  case DType::I32:
    return reduce<int32_t, int32_t, Op>(inputs, numInputs, out, count);
  case DType::I16:
    return reduce<int16_t, int16_t, Op>(inputs, numInputs, out, count);
  case DType::I8:
    return reduce<int8_t, int8_t, Op>(inputs, numInputs, out, count);
  case DType::U8:
  case DType::I1:
    return reduce<uint8_t, uint8_t, Op>(inputs, numInputs, out, count);
  }
}
} // namespace

void spmd::runtime::reduceInOrder(DType dtype, ReductionKind kind, const void *const *inputs, int64_t numInputs,
                                  void *out, int64_t count) {
  if (numInputs == 1) {
    std::memmove(out, inputs[0], static_cast<size_t>(count * sizeOf(dtype)));
    return;
  }
  switch (kind) {
  case ReductionKind::Sum:
    return reduceTyped<Sum>(dtype, inputs, numInputs, out, count);
  case ReductionKind::Max:
    return reduceTyped<Max>(dtype, inputs, numInputs, out, count);
  case ReductionKind::Min:
    return reduceTyped<Min>(dtype, inputs, numInputs, out, count);
  case ReductionKind::Norm2:
    return reduceTyped<Norm2>(dtype, inputs, numInputs, out, count);
  }
}
