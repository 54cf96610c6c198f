//===- Rows.h - a tensor as rows of the elements to combine -----*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_ROWS_H
#define SPMD_LIB_INTERPRETER_EVAL_ROWS_H

#include "spmd/Interpreter/Tensor.h"
#include "llvm/ADT/STLExtras.h"

namespace spmd::interp {

/// Some dims of a shape (nonnegative, any order) moved behind the others: the
/// tensor becomes `outer` rows of `inner` elements.
struct ReducedDims {
  int64_t outer = 1, inner = 1;
  /// What is left: without the dims, or with 1 in their place.
  Shape resultShape;

  ReducedDims(ShapeRef shape, ShapeRef dims, bool keepdim) {
    Shape strides = contiguousStrides(shape);
    for (int64_t i = 0, e = shape.size(); i < e; ++i) {
      if (llvm::is_contained(dims, i)) {
        inner *= shape[i];
        if (keepdim)
          resultShape.push_back(1);
        continue;
      }
      outer *= shape[i];
      resultShape.push_back(shape[i]);
      order.push_back(i);
    }
    for (int64_t i = 0, e = shape.size(); i < e; ++i)
      if (llvm::is_contained(dims, i))
        order.push_back(i);
  }

  /// The elements, rows one after the other.
  Tensor gather(const Tensor &source) const {
    Shape own = contiguousStrides(source.shape()), shape, strides;
    for (int64_t i : order) {
      shape.push_back(source.dim(i));
      strides.push_back(own[i]);
    }
    if (llvm::is_sorted(order))
      return source.reshaped({outer, inner});
    return gatherStrided(source, shape, strides).reshaped({outer, inner});
  }

private:
  Shape order;
};

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_ROWS_H
