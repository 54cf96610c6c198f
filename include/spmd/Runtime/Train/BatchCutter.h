//===- BatchCutter.h - Global tensors and their local rows -------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_BATCHCUTTER_H
#define SPMD_RUNTIME_TRAIN_BATCHCUTTER_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/RankReader.h"

namespace spmd::runtime {

/// Copies the rows of `rank`, which is here, out of a global tensor to `offset` of its arena; rows beyond the tensor's
/// end are zero.
Status cutRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank, const void *global,
               RankMemory &memory, int64_t offset);

/// The inverse: copies the rows of `rank` into a global tensor.
Status joinRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank,
                const RankReader &reader, int64_t offset, void *global);

/// Checks that all values of a tensor with `index_bound` are row ids. The error
/// names the input, the position and the value.
Status checkRowIds(const BatchInput &input, const void *data);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_BATCHCUTTER_H
