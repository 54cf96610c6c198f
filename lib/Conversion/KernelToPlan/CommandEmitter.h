//===- CommandEmitter.h - One command per op, with waits --------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMANDEMITTER_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMANDEMITTER_H

#include "BufferAssignment.h"
#include "mlir/IR/Builders.h"

namespace spmd {

/// Writes `program`, whose body is empty: a buffer op per buffer of `assignment` (without offset), the bindings of
/// arguments and results, and the commands of `step` in block order. Emits an error for a collective that is not flat.
mlir::LogicalResult emitCommands(mlir::func::FuncOp step, const BufferAssignment &assignment, plan::ProgramOp program);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMANDEMITTER_H
