//===- Passes.h - code generation for kernel ops ----------------*- C++ -*-===//

#ifndef SPMD_KERNELS_PASSES_H
#define SPMD_KERNELS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "spmd/Transforms/BooleanOption.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace spmd::kernel {

#define GEN_PASS_DECL
#include "spmd/Kernels/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "spmd/Kernels/Passes.h.inc"

} // namespace spmd::kernel

#endif // SPMD_KERNELS_PASSES_H
