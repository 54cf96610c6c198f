//===- Source.h - where an op comes from, for people ------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_SOURCE_H
#define SPMD_DIALECTS_SPMD_SOURCE_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/Location.h"

namespace spmd {

/// loc(fused<#spmd.src<"module">>[frames]); `frames` is a file location or a
/// call-site chain, innermost first.
mlir::Location getSourceLoc(llvm::StringRef module, mlir::Location frames);

/// Module path in the location, empty when it has none.
llvm::StringRef getModulePath(mlir::Location loc);

/// Innermost file location, null when there is none.
mlir::FileLineColLoc getUserFrame(mlir::Location loc);

/// "h.0.attn, train.py:12", as far as the location says; for messages.
std::string describeSource(mlir::Location loc);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_SOURCE_H
