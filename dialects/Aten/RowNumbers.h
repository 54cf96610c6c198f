//===- RowNumbers.h - Operands that hold numbers of rows --------*- C++ -*-===//

#ifndef SPMD_DIALECTS_ATEN_ROWNUMBERS_H
#define SPMD_DIALECTS_ATEN_ROWNUMBERS_H

#include "mlir/IR/Value.h"
#include <optional>

namespace spmd::aten {

/// What the elements of an operand may be when they are numbers of rows or of classes: in [0, bound), or `ignored`.
struct RowNumbers {
  int64_t bound;
  std::optional<int64_t> ignored;
};

/// For `rowNumbers` of an op in the .td files: `operand` holds them if it is `holder`.
inline std::optional<RowNumbers> rowNumbersIn(mlir::OpOperand &holder, mlir::OpOperand &operand, int64_t bound,
                                              std::optional<int64_t> ignored = std::nullopt) {
  if (&holder != &operand)
    return std::nullopt;
  return RowNumbers{bound, ignored};
}

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_ROWNUMBERS_H
