//===- Cure.cpp - What a user can change so that an error goes ------------===//

#include "dialects/Spmd/Cure.h"

using namespace mlir;

/// How such a note begins, and what its metadata is.
static constexpr llvm::StringLiteral kCure = "cure: ";

Diagnostic &spmd::attachCure(InFlightDiagnostic &error) {
  Diagnostic &note = error.attachNote();
  note.getMetadata().push_back(DiagnosticArgument(StringRef(kCure)));
  return note << kCure;
}

std::optional<std::string> spmd::getCure(Diagnostic &note) {
  bool isCure = llvm::any_of(note.getMetadata(), [](const DiagnosticArgument &argument) {
    return argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == kCure;
  });
  if (!isCure)
    return std::nullopt;
  return note.str().substr(kCure.size());
}
