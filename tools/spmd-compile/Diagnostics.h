//===- Diagnostics.h - Errors with module path and Python line --*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICS_H
#define SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

/// Prints diagnostics on standard error for people who wrote the model, not the compiler:
///
///   train.py:12: error: …
///     in h.0.attn
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticPrinter(mlir::MLIRContext *context, bool remarks);

private:
  void print(mlir::Diagnostic &diagnostic, bool isNote);
};

#endif // SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICS_H
