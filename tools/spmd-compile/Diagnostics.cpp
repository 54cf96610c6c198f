//===- Diagnostics.cpp - Errors with module path and Python line ----------===//

#include "Diagnostics.h"
#include "dialects/Spmd/Source.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static StringRef getSeverityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext *context, bool remarks) : ScopedDiagnosticHandler(context) {
  setHandler([this, remarks](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark || remarks)
      print(diagnostic, /*isNote=*/false);
    return success();
  });
}

void DiagnosticPrinter::print(Diagnostic &diagnostic, bool isNote) {
  llvm::raw_ostream &os = llvm::errs();
  Location loc = diagnostic.getLocation();
  os << (isNote ? "  " : "");
  if (FileLineColLoc frame = spmd::getUserFrame(loc))
    os << frame.getFilename().getValue() << ':' << frame.getLine() << ": ";
  else if (!isNote)
    os << "spmd-compile: ";
  os << getSeverityName(diagnostic.getSeverity()) << ": " << diagnostic << '\n';
  if (StringRef module = spmd::getModulePath(loc); !module.empty())
    os << (isNote ? "    in " : "  in ") << module << '\n';
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, /*isNote=*/true);
}
