//===- RankRows.h - how ranks' values make up a global one ------*- C++ -*-===//
//
// The meaning of the states of #spmd.sharding, in one place: inputs are cut by
// it, results put together by it, and collectives are made of it.
//===----------------------------------------------------------------------===//
#ifndef SPMD_INTERPRETER_RANKROWS_H
#define SPMD_INTERPRETER_RANKROWS_H

#include "dialects/Spmd/AxisState.h"
#include "spmd/Interpreter/Tensor.h"

namespace spmd::interp {

/// Dim `dim` read as [pre][total]: rows [position * chunk, + chunk) of each part,
/// zero where there are none.
Tensor takeRows(const Tensor &whole, int64_t dim, int64_t pre, int64_t chunk, int64_t position);

/// The inverse: parts with dim `dim` read as [pre][chunk] make [pre][total];
/// rows beyond `total` are dropped.
Tensor joinRows(llvm::ArrayRef<Tensor> parts, int64_t dim, int64_t pre, int64_t total);

/// Combines equally shaped values elementwise, in order. With `roundEach` every
/// partial result is rounded to the element type, as a communicator that
/// accumulates in that type would.
Tensor combine(llvm::ArrayRef<Tensor> values, ReduceKind kind, bool roundEach);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_RANKROWS_H
