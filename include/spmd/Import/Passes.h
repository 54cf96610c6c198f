//===- Passes.h - what only the captured ops still say ----------*- C++ -*-===//

#ifndef SPMD_IMPORT_PASSES_H
#define SPMD_IMPORT_PASSES_H

#include "mlir/Pass/Pass.h"
#include "spmd/Transforms/BooleanOption.h"

namespace spmd {
#define GEN_PASS_DECL
#include "spmd/Import/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

#endif // SPMD_IMPORT_PASSES_H
