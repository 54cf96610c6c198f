//===- JoinKernels.h - Kernels of two programs in one file ------*- C++ -*-===//
#ifndef SPMD_LIB_PIPELINES_JOINKERNELS_H
#define SPMD_LIB_PIPELINES_JOINKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace spmd {

/// Moves the kernels of `program`, a module after phase `plan`, into the module `into`. One that is there already is
/// taken from there; the others get names that are new there. `program` launches them by these names.
void joinKernels(mlir::ModuleOp program, mlir::ModuleOp into);

} // namespace spmd

#endif // SPMD_LIB_PIPELINES_JOINKERNELS_H
