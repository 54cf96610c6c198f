//===- Collectives.h - communication between the ranks ----------*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_COLLECTIVES_H
#define SPMD_LIB_INTERPRETER_COLLECTIVES_H

#include "dialects/Spmd/Spmd.h"
#include "spmd/Interpreter/Interpreter.h"

namespace spmd::interp {

/// What every rank receives from a collective, per received value. A start gives
/// what the wait for it will give.
mlir::FailureOr<llvm::SmallVector<PerRank>> runCollective(CollectiveOpInterface op, llvm::ArrayRef<PerRank> operands,
                                                          const Mesh &mesh, Precision precision);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_COLLECTIVES_H
