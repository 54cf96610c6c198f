//===- UnpackViews.h - parameters of a gathered buffer ----------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace spmd::fusion {

/// Makes every spmd.unpack of a unit give all parameters that some unpack of the unit gives: a buffer that is gathered
/// again has them all, and what is computed again in backward may need others than backward itself did.
void widenUnpacks(mlir::func::FuncOp func);

/// Makes every spmd.unpack give only what is used, and removes those of which nothing is.
void narrowUnpacks(mlir::func::FuncOp func);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H
