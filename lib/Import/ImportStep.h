//===- ImportStep.h - A step in memory as IR --------------------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_IMPORTSTEP_H
#define SPMD_LIB_IMPORT_IMPORTSTEP_H

#include "Package/StepPackage.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spmd {

/// What importStep of a file does once it is read: null after an error, which names the node and its place.
mlir::OwningOpRef<mlir::ModuleOp> importStep(const step::Step &step, mlir::MLIRContext *context);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_IMPORTSTEP_H
