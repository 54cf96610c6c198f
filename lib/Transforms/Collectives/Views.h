//===- Views.h - what may read a gathered buffer ----------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H
#define SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace spmd {

/// True when the op's results may be read from its operands' bytes later, because
/// it only rearranges or selects elements (the kernels fold such ops into what
/// reads them).
bool isViewOp(mlir::Operation *op);

/// The last op in the block that reads `value` or, through views, its bytes; null
/// when nothing does.
mlir::Operation *getLastReader(mlir::Value value);
/// The same, by another way to tell their order.
mlir::Operation *getLastReader(mlir::Value value,
                               llvm::function_ref<bool(mlir::Operation *, mlir::Operation *)> isBefore);

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_COLLECTIVES_VIEWS_H
