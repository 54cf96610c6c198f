//===- BatchDims.h - Saying which dimension is the batch --------*- C++ -*-===//
#ifndef SPMD_PIPELINES_BATCHDIMS_H
#define SPMD_PIPELINES_BATCHDIMS_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <utility>
#include <vector>

namespace spmd {

/// Sets the batch dimension of batch inputs of `@step` by name; -1 means none. A wrong one costs communication, never
/// numbers. Unknown names and dimensions that an input does not have are errors.
mlir::LogicalResult setBatchDims(mlir::ModuleOp module, llvm::ArrayRef<std::pair<std::string, int64_t>> dims);

} // namespace spmd

#endif // SPMD_PIPELINES_BATCHDIMS_H
