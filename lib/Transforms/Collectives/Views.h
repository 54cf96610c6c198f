//===- Views.h - what may read a gathered buffer ----------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H
#define SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H

#include "mlir/IR/Operation.h"

namespace spmd {

/// True when the op's results may be read from its operands' bytes later, because
/// it only rearranges or selects elements (the kernels fold such ops into what
/// reads them).
bool isViewOp(mlir::Operation *op);

/// The last op in the block that reads `value` or, through views, its bytes; null
/// when nothing does.
mlir::Operation *getLastReader(mlir::Value value);

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H
