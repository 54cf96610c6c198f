//===- BatchCutter.h - Global tensors and their local rows -------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_BATCHCUTTER_H
#define SPMD_RUNTIME_HOST_BATCHCUTTER_H

#include "spmd/Runtime/Core/Manifest.h"

namespace spmd::runtime {

/// Copies the rows of `rank` out of a global tensor; rows beyond its end are
/// zero.
void cutRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank, const void *global,
             void *local);

/// The inverse: copies the rows of `rank` into a global tensor.
void joinRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank, const void *local,
              void *global);

/// Checks that all values of a tensor with `index_bound` are row ids. The error
/// names the input, the position and the value.
Status checkRowIds(const BatchInput &input, const void *data);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_BATCHCUTTER_H
