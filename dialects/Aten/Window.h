//===- Window.h - Where windows lie in an image -----------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_WINDOW_H
#define SPMD_DIALECTS_ATEN_WINDOW_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace spmd::aten {

/// Windows over the spatial dimensions of an image: element k of window o, along one dimension, is element
/// o * stride - padding + k * dilation of the image.
struct Windows {
  llvm::SmallVector<int64_t, 3> kernel, stride, padding, dilation;

  size_t rank() const { return kernel.size(); }
  int64_t kernelElements() const {
    int64_t count = 1;
    for (int64_t size : kernel)
      count *= size;
    return count;
  }
  /// Number of windows that lie inside the padded image along one dimension.
  int64_t count(size_t dim, int64_t size) const {
    return (size + 2 * padding[dim] - dilation[dim] * (kernel[dim] - 1) - 1) / stride[dim] + 1;
  }
};

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_WINDOW_H
