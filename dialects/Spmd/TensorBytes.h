//===- TensorBytes.h - the bytes of a tensor in memory ----------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_TENSORBYTES_H
#define SPMD_DIALECTS_SPMD_TENSORBYTES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace spmd {

/// The bytes of an element; a truth value takes one.
inline int64_t getElementBytes(mlir::Type element) {
  return static_cast<int64_t>(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
}

/// The bytes of a tensor of known shape, without padding.
inline int64_t getTensorBytes(mlir::RankedTensorType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_TENSORBYTES_H
