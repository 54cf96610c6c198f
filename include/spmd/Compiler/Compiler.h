//===- Compiler.h - From a step package to an artifact ----------*- C++ -*-===//
#ifndef SPMD_COMPILER_COMPILER_H
#define SPMD_COMPILER_COMPILER_H

#include "spmd/Compiler/CompilerOptions.h"
#include "spmd/Compiler/DiagnosticRecord.h"
#include "spmd/Runtime/Core/Status.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace spmd {

/// Where a compilation tells what it tells beside the files that it writes.
struct CompilerListener {
  /// Errors, warnings and, with CompilerOptions::remarks, remarks.
  DiagnosticConsumer diagnose;
  /// Takes the tables: units, collectives, arena. Null for none.
  llvm::raw_ostream *report = nullptr;
  /// Told what is begun ("partition"), and "" when the report follows. Empty for nobody.
  std::function<void(llvm::StringRef)> progress;
};

/// Compiles one step: Ok; BadInput, what was given is refused; Failed, a failure of the compiler itself, or of the
/// disk. All but Ok is said by an error. Calls from several threads run one after the other.
runtime::StatusCode compile(const CompilerOptions &options, const CompilerListener &listener);

} // namespace spmd

#endif // SPMD_COMPILER_COMPILER_H
