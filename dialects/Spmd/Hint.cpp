//===- Hint.cpp - What a user can change so that an error goes ------------===//

#include "dialects/Spmd/Hint.h"

using namespace mlir;

/// How such a note begins, and what its metadata is.
static constexpr llvm::StringLiteral kHint = "hint: ";

Diagnostic &spmd::attachHint(InFlightDiagnostic &error) {
  Diagnostic &note = error.attachNote();
  note.getMetadata().push_back(DiagnosticArgument(StringRef(kHint)));
  return note << kHint;
}

std::optional<std::string> spmd::getHint(Diagnostic &note) {
  bool isHint = llvm::any_of(note.getMetadata(), [](const DiagnosticArgument &argument) {
    return argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == kHint;
  });
  if (!isHint)
    return std::nullopt;
  return note.str().substr(kHint.size());
}
