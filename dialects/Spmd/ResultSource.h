//===- ResultSource.h - where results of kernels come from ------*- C++ -*-===//
//
// A kernel is made of many ops. Its location says, besides where all of them stand, which of them computes which
// result, so that a plan can name the tensors that it holds.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_SPMD_RESULTSOURCE_H
#define SPMD_DIALECTS_SPMD_RESULTSOURCE_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

namespace spmd {

/// loc("mul.Tensor#1"(loc)): result number 1 of a kernel is computed by this op, which stands at `loc`.
mlir::Location getResultLoc(llvm::StringRef op, unsigned result, mlir::Location loc);

/// The op that computed a result of a kernel, and where it stands: what getResultLoc put into the kernel's location,
/// else the kernel itself.
std::pair<llvm::StringRef, mlir::Location> getResultSource(mlir::OpResult result);

/// On a module: what every rank computes whole, as dictionaries of `op`, `bytes` and `source`.
constexpr llvm::StringLiteral kReplicatedAttr = "spmd.replicated";

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_RESULTSOURCE_H
