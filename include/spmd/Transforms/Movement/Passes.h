//===- Passes.h - copies that a model spells out ----------------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_MOVEMENT_PASSES_H
#define SPMD_TRANSFORMS_MOVEMENT_PASSES_H

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace spmd {

#define GEN_PASS_DECL
#include "spmd/Transforms/Movement/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Transforms/Movement/Passes.h.inc"

} // namespace spmd

#endif // SPMD_TRANSFORMS_MOVEMENT_PASSES_H
