//===- Passes.h - from the global step to one rank's program ----*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_PARTITION_PASSES_H
#define SPMD_TRANSFORMS_PARTITION_PASSES_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace spmd {

#define GEN_PASS_DECL
#include "spmd/Transforms/Partition/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Transforms/Partition/Passes.h.inc"

} // namespace spmd

#endif // SPMD_TRANSFORMS_PARTITION_PASSES_H
