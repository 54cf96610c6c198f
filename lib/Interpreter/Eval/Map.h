//===- Map.h - elementwise application over broadcast tensors ---*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_MAP_H
#define SPMD_LIB_INTERPRETER_EVAL_MAP_H

#include "spmd/Interpreter/Evaluator.h"
#include <array>
#include <utility>

namespace spmd::interp {

/// PyTorch's Scalar argument `name` as a 0-dim i64, i1 or f64 tensor.
Tensor scalarArgument(const OpCall &call, llvm::StringRef name);

namespace detail {

/// One operand of an elementwise loop: its elements and the step between them
/// (0 repeats a single element).
template <typename T>
struct Stream {
  std::shared_ptr<const std::vector<T>> own;
  const T *data;
  int64_t step;
  T operator[](int64_t i) const { return data[i * step]; }
};

inline Stream<double> realStream(const Tensor &tensor, ShapeRef shape) {
  Tensor full = tensor.numel() == 1 ? tensor : broadcastTo(tensor, shape);
  std::shared_ptr<const std::vector<double>> own = full.asReals();
  const double *data = own->data();
  return {std::move(own), data, full.numel() == 1 ? 0 : 1};
}

template <typename F, typename Streams, size_t... I>
auto applyAt(F &f, const Streams &streams, int64_t i, std::index_sequence<I...>) {
  return f(streams[I][i]...);
}

} // namespace detail

/// The common broadcast shape of `operands`, or an error at the op.
mlir::FailureOr<Shape> commonShape(OpCall &call, llvm::ArrayRef<const Tensor *> operands);

/// f(operands...) elementwise in double, whatever the operand types, as `type`.
template <typename F, typename... T>
mlir::FailureOr<Tensor> computeReals(OpCall &call, DType type, F f, const T &...operands) {
  mlir::FailureOr<Shape> shape = commonShape(call, {&operands...});
  if (failed(shape))
    return mlir::failure();
  Tensor result(type, *shape);
  std::array streams = {detail::realStream(operands, *shape)...};
  auto sequence = std::index_sequence_for<T...>();
  int64_t count = result.numel();
  if (result.isFloating()) {
    double *out = result.realData();
    for (int64_t i = 0; i < count; ++i)
      out[i] = detail::applyAt(f, streams, i, sequence);
  } else {
    for (int64_t i = 0; i < count; ++i)
      result.set(i, detail::applyAt(f, streams, i, sequence));
  }
  return result;
}

/// result = f(operands...) elementwise in double.
template <typename F, typename... T>
mlir::LogicalResult mapReals(OpCall &call, F f, const T &...operands) {
  mlir::FailureOr<Tensor> result = computeReals(call, call.resultType(), f, operands...);
  if (failed(result))
    return mlir::failure();
  call.result(std::move(*result));
  return mlir::success();
}

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_MAP_H
