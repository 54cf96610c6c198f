//===- Cure.h - What a user can change so that an error goes ----*- C++ -*-===//
#ifndef SPMD_DIALECTS_SPMD_CURE_H
#define SPMD_DIALECTS_SPMD_CURE_H

#include "mlir/IR/Diagnostics.h"
#include <optional>
#include <string>

namespace spmd {

/// A note that is the cure of `error`, to be written into. Programs that read diagnostics are told which note it is,
/// so that nothing has to look for the word.
mlir::Diagnostic &attachCure(mlir::InFlightDiagnostic &error);

/// What such a note says; nothing for any other.
std::optional<std::string> getCure(mlir::Diagnostic &note);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_CURE_H
