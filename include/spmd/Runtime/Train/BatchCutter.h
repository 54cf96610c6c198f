//===- BatchCutter.h - Global tensors and their local rows -------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_BATCHCUTTER_H
#define SPMD_RUNTIME_TRAIN_BATCHCUTTER_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/RankAccess.h"

namespace spmd::runtime {

/// Copies the rows of the rank that is at `position` among those which share a tensor to `offset` of the arena of `rank`,
/// which is here; rows beyond the tensor's end are zero.
Status cutRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t position,
               const void *tensor, RankMemory &memory, int64_t rank, int64_t offset);

/// The inverse: copies the rows of `rank`, which is at `position`, into a global tensor.
Status joinRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank, int64_t position,
                const RankAccess &reader, int64_t offset, void *global);

/// Checks that all values of a tensor of `shape`, given for an input with `index_bound`, are row ids. The error names the
/// input, the position and the value.
Status checkRowIds(const BatchInput &input, const std::vector<int64_t> &shape, const void *data);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_BATCHCUTTER_H
