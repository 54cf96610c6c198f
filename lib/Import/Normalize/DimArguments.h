//===- DimArguments.h - Ops with a dimension and an index -------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_DIMARGUMENTS_H
#define SPMD_LIB_IMPORT_NORMALIZE_DIMARGUMENTS_H

#include "../Emitter.h"

namespace spmd {

/// Ops on 0-dimensional tensors are on one row.
mlir::Value atLeastVector(Emitter &emitter, mlir::Value value);

/// The tensor arguments of an op with a dim and an index, brought to one rank.
struct DimArguments {
  mlir::Value self, index;
  int64_t dim = 0;
};
mlir::FailureOr<DimArguments> readDimArguments(Emitter &emitter, Call &call);

/// `value` has at least the sizes of `shape`, but for `dim`.
llvm::LogicalResult checkCorner(Emitter &emitter, Call &call, mlir::Value value, llvm::ArrayRef<int64_t> shape,
                                int64_t dim);
/// The corner of `value` that has `shape`; `dim` is left as it is.
mlir::Value sliceCorner(Emitter &emitter, mlir::Value value, llvm::ArrayRef<int64_t> shape, int64_t dim);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_DIMARGUMENTS_H
