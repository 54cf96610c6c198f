//===- DynamicBatch.h - a captured step for several batch sizes -*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_DYNAMICBATCH_H
#define SPMD_DIALECTS_SPMD_DYNAMICBATCH_H

#include "llvm/ADT/StringRef.h"

namespace spmd {

/// Of a captured step's module, until `spmd-dynamic-batch`: {rows = "rows", size = 9}, the name of the batch input that
/// is the number of rows, and how many of them the step was captured with.
constexpr llvm::StringLiteral kDynamicBatchAttr = "spmd.dynamic_batch";
/// The module inside of it that is the same step captured with another number of rows.
constexpr llvm::StringLiteral kOtherBatchName = "other_batch";

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_DYNAMICBATCH_H
