//===- Passes.h - From kernels to the command plan --------------*- C++ -*-===//
#ifndef SPMD_CONVERSION_KERNELTOPLAN_PASSES_H
#define SPMD_CONVERSION_KERNELTOPLAN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace spmd {
#define GEN_PASS_DECL
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

#endif // SPMD_CONVERSION_KERNELTOPLAN_PASSES_H
