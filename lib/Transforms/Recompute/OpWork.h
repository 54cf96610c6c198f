//===- OpWork.h - an aten op as the cost model reads it ---------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_RECOMPUTE_OPWORK_H
#define SPMD_LIB_TRANSFORMS_RECOMPUTE_OPWORK_H

#include "mlir/IR/Operation.h"
#include "spmd/Cost/Prices.h"

namespace spmd::recompute {

/// Bytes of a tensor of numbers; 0 of any other value.
int64_t getNumBytes(mlir::Value value);

/// What a heavy aten op computes when it is a kernel of its own. Attention counts the pairs that `is_causal` leaves; a
/// mask that is an operand leaves all of them.
cost::KernelWork getWork(mlir::Operation *op);

} // namespace spmd::recompute

#endif // SPMD_LIB_TRANSFORMS_RECOMPUTE_OPWORK_H
