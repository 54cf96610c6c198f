//===- Passes.h - from aten to kernels --------------------------*- C++ -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_PASSES_H
#define SPMD_CONVERSION_ATENTOKERNEL_PASSES_H

#include "mlir/Pass/Pass.h"
#include "spmd/Transforms/BooleanOption.h"

namespace spmd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "spmd/Conversion/AtenToKernel/Passes.h.inc"

} // namespace spmd

#endif // SPMD_CONVERSION_ATENTOKERNEL_PASSES_H
