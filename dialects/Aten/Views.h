//===- Views.h - ops whose results are elements of an operand ---*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_VIEWS_H
#define SPMD_DIALECTS_ATEN_VIEWS_H

#include "dialects/Aten/AtenInterfaces.h"

namespace spmd::aten {

/// Whether an op only rearranges or selects elements of its first operand.
inline bool isView(mlir::Operation *op) {
  auto aten = mlir::dyn_cast<AtenOpInterface>(op);
  return aten && aten.isView();
}

/// The value whose bytes a chain of views shows: `value` itself if no view gives it.
inline mlir::Value getBase(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (!isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_VIEWS_H
