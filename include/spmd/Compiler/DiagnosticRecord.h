//===- DiagnosticRecord.h - What the compiler says, in parts ----*- C++ -*-===//
#ifndef SPMD_COMPILER_DIAGNOSTICRECORD_H
#define SPMD_COMPILER_DIAGNOSTICRECORD_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <string>
#include <vector>

namespace spmd {

/// A line of the user's program.
struct SourceFrame {
  std::string file;
  int64_t line = 0, column = 0;
};

/// One diagnostic: for people as render() writes it, for programs as toJson() does.
struct DiagnosticRecord {
  mlir::DiagnosticSeverity severity = mlir::DiagnosticSeverity::Error;
  /// What programs react to, such as `memory-budget`; most have none.
  std::string code;
  std::string message;
  /// Path of the module that the place belongs to.
  std::string module;
  /// The place in the user's program, innermost first.
  std::vector<SourceFrame> location;
  std::vector<DiagnosticRecord> notes;
  /// What the user can change so that it goes away.
  std::string hint;

  static DiagnosticRecord error(std::string message) { return make(mlir::DiagnosticSeverity::Error, message); }
  static DiagnosticRecord note(std::string message) { return make(mlir::DiagnosticSeverity::Note, message); }

  /// For people who wrote the model, not the compiler, each part on lines of its own:
  ///
  ///   train.py:12: error: …
  ///     in h.0.attn
  std::string render() const;

  /// One line of JSON, without the line's end: docs/diagnostics.md.
  std::string toJson() const;

private:
  static DiagnosticRecord make(mlir::DiagnosticSeverity severity, std::string message) {
    DiagnosticRecord record;
    record.severity = severity;
    record.message = std::move(message);
    return record;
  }
};

/// Takes diagnostics in the order in which they are said.
using DiagnosticConsumer = std::function<void(const DiagnosticRecord &)>;

/// The parts of one of MLIR's.
DiagnosticRecord toRecord(mlir::Diagnostic &diagnostic);

/// "note", "warning", "error" or "remark".
llvm::StringRef getSeverityName(mlir::DiagnosticSeverity severity);

/// Hands all that is said in a context on as records; remarks only when they are wanted.
class RecordDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  RecordDiagnostics(mlir::MLIRContext *context, bool remarks, DiagnosticConsumer consume);
};

} // namespace spmd

#endif // SPMD_COMPILER_DIAGNOSTICRECORD_H
