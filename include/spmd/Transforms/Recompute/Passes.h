//===- Passes.h - what backward computes again ------------------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_RECOMPUTE_PASSES_H
#define SPMD_TRANSFORMS_RECOMPUTE_PASSES_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace spmd {

#define GEN_PASS_DECL
#include "spmd/Transforms/Recompute/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Transforms/Recompute/Passes.h.inc"

} // namespace spmd

#endif // SPMD_TRANSFORMS_RECOMPUTE_PASSES_H
