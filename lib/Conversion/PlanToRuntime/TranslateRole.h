//===- TranslateRole.h - Roles as entries of a manifest ----------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEROLE_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEROLE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "spmd/Runtime/Core/Manifest.h"
#include <variant>

namespace spmd {

/// The section of the manifest that a role belongs to, by its entry.
using RoleEntry = std::variant<runtime::StateEntry, runtime::BatchInput, runtime::HyperParameter, runtime::Output>;

/// What the role `role` of a tensor says of it: its names, dtype, and of a state its size and first value. Where it lies
/// is not known here. Fails, with an error at `op`, for what is no role, and for a type that the runtime does not have.
mlir::FailureOr<RoleEntry> translateRole(mlir::Operation *op, mlir::Attribute role, mlir::RankedTensorType type);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEROLE_H
