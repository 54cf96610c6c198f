//===- Import.h - Step packages as IR ---------------------------*- C++ -*-===//

#ifndef SPMD_IMPORT_IMPORT_H
#define SPMD_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace spmd {

/// Reads a step package (the folder NAME.step, or its step.json) and returns
/// the step as one pure function @step of aten ops, with the module tree beside
/// it; contracts in docs/step-format.md and dialects/Spmd.
///
/// The capture's in-place ops and views become values: a write rebinds what
/// the written tensor and everything that views it mean from there on. Updated
/// parameters, buffers and optimizer state are results with `#spmd.update`. If
/// weights.safetensors is there, its header must agree with the inputs.
///
/// Bad input emits an error that names the file and the JSON pointer of the bad
/// place, and for ops the module path and the Python line; the result is null.
mlir::OwningOpRef<mlir::ModuleOp> importStep(llvm::StringRef path, mlir::MLIRContext *context);

/// The same, but of a loop over microbatches only the first `kept` iterations. Then the module has `spmd.iterations`
/// (dialects/Spmd/Iterations.h), which says what is left out; it has not, and is whole, where a step has no loop with
/// more iterations of which the first ones may stand for all.
mlir::OwningOpRef<mlir::ModuleOp> importIterations(llvm::StringRef path, int64_t kept, mlir::MLIRContext *context);

/// Reads a training step that JAX lowered to StableHLO, in MLIR's generic form, and returns it as importStep does
/// (docs/stablehlo.md). `roles` is a JSON file that says what arguments and results are. With `package`, that gets
/// the text of the step.json that says the same.
///
/// Errors are at the op, with the user's line where the file has it, or name the place in the JSON file.
mlir::OwningOpRef<mlir::ModuleOp> importStableHlo(llvm::StringRef path, llvm::StringRef roles,
                                                  mlir::MLIRContext *context, std::string *package = nullptr);

} // namespace spmd

#endif // SPMD_IMPORT_IMPORT_H
