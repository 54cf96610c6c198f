//===- ArgumentType.h - elements in the body of a kernel --------*- C++ -*-===//

#ifndef SPMD_DIALECTS_KERNEL_ARGUMENTTYPE_H
#define SPMD_DIALECTS_KERNEL_ARGUMENTTYPE_H

#include "mlir/IR/BuiltinTypes.h"

namespace spmd::kernel {

/// The type that an element of `type`, a tensor or its element type, has as argument of a body and where it is yielded:
/// arith knows no unsigned types.
inline mlir::Type getArgumentType(mlir::Type type) {
  if (auto tensor = mlir::dyn_cast<mlir::ShapedType>(type))
    type = tensor.getElementType();
  return type.isUnsignedInteger() ? mlir::IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth()) : type;
}

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_ARGUMENTTYPE_H
