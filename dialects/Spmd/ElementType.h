//===- ElementType.h - dtypes of files as types -----------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_ELEMENTTYPE_H
#define SPMD_DIALECTS_SPMD_ELEMENTTYPE_H

#include "mlir/IR/Types.h"
#include "spmd/Runtime/Core/DType.h"

namespace spmd {

/// The element type for a dtype; bool is i1, u8 is ui8.
mlir::Type getElementType(runtime::DType dtype, mlir::MLIRContext *context);

/// The dtype of an element type; nothing for a type that no file has.
std::optional<runtime::DType> getDType(mlir::Type type);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_ELEMENTTYPE_H
