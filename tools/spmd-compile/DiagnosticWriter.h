//===- DiagnosticWriter.h - Where diagnostics go ----------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICWRITER_H
#define SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICWRITER_H

#include "spmd/Compiler/DiagnosticRecord.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

/// Writes diagnostics as text on standard error, or as lines of JSON on a descriptor, which leaves standard error the
/// text when it is another file.
class DiagnosticWriter {
public:
  /// `format` is text or json. What is wrong with these; empty when they are right. Until then all is written as text.
  std::string open(const std::string &format, int descriptor);
  void write(const spmd::DiagnosticRecord &record);
  /// What the parser of the command line says, which has its own form.
  void writeText(llvm::StringRef text);
  /// False, after a message on standard error, when not all could be written.
  bool close();

private:
  std::unique_ptr<llvm::raw_fd_ostream> json;
  bool isText = true;
};

#endif // SPMD_TOOLS_SPMD_COMPILE_DIAGNOSTICWRITER_H
