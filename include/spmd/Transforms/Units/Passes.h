//===- Passes.h - shard units -----------------------------------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_UNITS_PASSES_H
#define SPMD_TRANSFORMS_UNITS_PASSES_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "spmd/ShardUnits/Mesh.h"
#include "spmd/Transforms/BooleanOption.h"

namespace spmd {

#define GEN_PASS_DECL
#include "spmd/Transforms/Units/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Transforms/Units/Passes.h.inc"

} // namespace spmd

#endif // SPMD_TRANSFORMS_UNITS_PASSES_H
