//===- Hint.h - What a user can change so that an error goes ----*- C++ -*-===//
#ifndef SPMD_DIALECTS_SPMD_HINT_H
#define SPMD_DIALECTS_SPMD_HINT_H

#include "mlir/IR/Diagnostics.h"
#include <optional>
#include <string>

namespace spmd {

/// A note that is the hint of `error`, to be written into. Programs that read diagnostics are told which note it is,
/// so that nothing has to look for the word.
mlir::Diagnostic &attachHint(mlir::InFlightDiagnostic &error);

/// What such a note says; nothing for any other.
std::optional<std::string> getHint(mlir::Diagnostic &note);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_HINT_H
