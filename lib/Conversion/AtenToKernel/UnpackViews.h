//===- UnpackViews.h - parameters of a gathered buffer ----------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace spmd::fusion {

/// What an spmd.unpack is a view of: the chunk that its buffer is gathered from, or the buffer itself where nothing is
/// gathered. Equal for the forward's and the backward's gather of a parameter; another for what an optimizer computes in
/// the unit's layout.
mlir::Value getUnpacked(UnpackOp unpack);

/// Makes every spmd.unpack give all parameters that some unpack of the same chunk gives: a buffer that is gathered
/// again has them all, and what is computed again in backward may need others than backward itself did.
void widenUnpacks(mlir::func::FuncOp func);

/// Makes every spmd.unpack give only what is used, and removes those of which nothing is.
void narrowUnpacks(mlir::func::FuncOp func);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_UNPACKVIEWS_H
