//===- SameValue.h - values that are computed twice -------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SAMEVALUE_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SAMEVALUE_H

#include "mlir/IR/Value.h"

namespace spmd {

/// Whether two values are one, or the same parameter, gathered for the forward and once more for the backward: parts of
/// gathers that send the same, or what clusters make of the same.
bool isSameValue(mlir::Value a, mlir::Value b);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SAMEVALUE_H
