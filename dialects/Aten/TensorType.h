//===- TensorType.h - The type of a value of a step -------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_TENSORTYPE_H
#define SPMD_DIALECTS_ATEN_TENSORTYPE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace spmd {

/// Every value of a step is a ranked tensor.
inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

namespace aten {
using spmd::typeOf;
} // namespace aten

} // namespace spmd

#endif // SPMD_DIALECTS_ATEN_TENSORTYPE_H
