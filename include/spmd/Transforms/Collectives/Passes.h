//===- Passes.h - fewer, larger, earlier collectives ------------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_COLLECTIVES_PASSES_H
#define SPMD_TRANSFORMS_COLLECTIVES_PASSES_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "spmd/Transforms/BooleanOption.h"

namespace spmd {

#define GEN_PASS_DECL
#include "spmd/Transforms/Collectives/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Transforms/Collectives/Passes.h.inc"

} // namespace spmd

#endif // SPMD_TRANSFORMS_COLLECTIVES_PASSES_H
