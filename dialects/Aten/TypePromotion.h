//===- TypePromotion.h - PyTorch's result element types ---------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_TYPEPROMOTION_H
#define SPMD_DIALECTS_ATEN_TYPEPROMOTION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace spmd::aten {

/// The element type that arithmetic on `tensors` and `scalars` (i64, f64, i1
/// attributes) has in PyTorch. Tensors with dimensions decide; 0-dimensional
/// ones, and after them scalars, only matter where they are of a higher kind
/// (bool < integer < float). A float scalar among integers gives the default
/// type, which is f32 if it is not given.
mlir::Type promoteTypes(llvm::ArrayRef<mlir::RankedTensorType> tensors, llvm::ArrayRef<mlir::Attribute> scalars,
                        mlir::MLIRContext *context, mlir::Type defaultFloat = {});

/// The element type that two element types have together.
mlir::Type promoteElementTypes(mlir::Type a, mlir::Type b);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_TYPEPROMOTION_H
