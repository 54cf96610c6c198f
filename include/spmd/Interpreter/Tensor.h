//===- Tensor.h - dense host tensors for the interpreter --------*- C++ -*-===//
//
// The value domain of the interpreter. A tensor is a shape, a program element
// type, and shared contiguous row-major storage: every floating element is held
// as a double, every integer or bool as an int64_t. So one set of evaluators
// serves float64 runs (nothing is ever rounded) and runs in the program's own
// types (every op's result is rounded to its element type by `rounded`).
//
// Tensors are values: once an evaluator has handed a tensor out nobody writes to
// it again, so reshapes and list elements share storage freely.
//===----------------------------------------------------------------------===//
#ifndef SPMD_INTERPRETER_TENSOR_H
#define SPMD_INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace spmd::interp {

enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, i1 };

/// The element type of the interpreter for an MLIR element type, or nothing.
std::optional<DType> getDType(mlir::Type type);
llvm::StringRef toString(DType dtype);
bool isFloating(DType dtype);
/// The value of `dtype` nearest to `value` (ties to even; overflow gives inf).
double roundTo(DType dtype, double value);
/// `value` modulo 2^width, as the integer type `dtype` holds it.
int64_t wrapTo(DType dtype, int64_t value);

using Shape = llvm::SmallVector<int64_t, 6>;
using ShapeRef = llvm::ArrayRef<int64_t>;

int64_t numElements(ShapeRef shape);

class Tensor {
public:
  /// An absent tensor (an optional operand or result that is not there).
  Tensor() = default;
  /// A tensor of zeros.
  Tensor(DType dtype, ShapeRef shape);
  /// A tensor with the given elements; their number must be that of `shape`.
  Tensor(DType dtype, ShapeRef shape, std::vector<double> values);
  Tensor(DType dtype, ShapeRef shape, std::vector<int64_t> values);
  static Tensor scalar(DType dtype, double value);
  static Tensor full(DType dtype, ShapeRef shape, double value);

  explicit operator bool() const { return present; }
  DType dtype() const { return type; }
  ShapeRef shape() const { return dims; }
  int64_t rank() const { return dims.size(); }
  int64_t dim(int64_t i) const { return dims[i]; }
  int64_t numel() const { return numElements(dims); }
  bool isFloating() const { return interp::isFloating(type); }

  /// The elements of a floating tensor.
  llvm::ArrayRef<double> reals() const { return *floats; }
  double *realData() { return floats->data(); }
  /// The elements of an integer or bool tensor.
  llvm::ArrayRef<int64_t> integers() const { return *ints; }
  int64_t *integerData() { return ints->data(); }

  /// Element `i` of the flat order, whatever the type.
  double at(int64_t i) const { return floats ? (*floats)[i] : static_cast<double>((*ints)[i]); }
  void set(int64_t i, double value);
  /// Element `i` becomes element `j` of a tensor of the same kind, exactly.
  void copyElement(int64_t i, const Tensor &from, int64_t j) {
    if (floats)
      (*floats)[i] = (*from.floats)[j];
    else
      (*ints)[i] = (*from.ints)[j];
  }

  /// The same elements under another shape of equal size.
  Tensor reshaped(ShapeRef shape) const;
  /// The same values as `dtype`: floats to integers truncate, anything to bool
  /// asks whether it is nonzero, integers wrap. Floats are not rounded.
  Tensor converted(DType dtype) const;
  /// The elements rounded to the tensor's own floating type.
  Tensor rounded() const;
  /// The elements seen as doubles (shared when they already are).
  std::shared_ptr<const std::vector<double>> asReals() const;

  /// Bitwise equality of type, shape and elements (NaN equals the same NaN).
  bool identical(const Tensor &other) const;

private:
  bool present = false;
  DType type = DType::f64;
  Shape dims;
  std::shared_ptr<std::vector<double>> floats;
  std::shared_ptr<std::vector<int64_t>> ints;
};

/// Row-major strides, in elements, of a contiguous tensor of this shape.
Shape contiguousStrides(ShapeRef shape);

/// Copies `source` read through a strided view (`offset` and one stride per dim
/// of `shape`, in elements) into a new contiguous tensor.
Tensor gatherStrided(const Tensor &source, ShapeRef shape, ShapeRef strides, int64_t offset = 0);
/// Writes the elements of `source` to the strided view of `target`.
void scatterStrided(Tensor &target, const Tensor &source, ShapeRef strides, int64_t offset = 0);

/// PyTorch's right-aligned broadcast; nothing when the shapes do not agree.
std::optional<Shape> broadcastShapes(ShapeRef a, ShapeRef b);
/// `source` repeated along its size-1 and missing dims (shared when equal).
Tensor broadcastTo(const Tensor &source, ShapeRef shape);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_TENSOR_H
