//===- BodyPadding.h - What a pointwise op makes of padding -----*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_OPTIMIZER_BODYPADDING_H
#define SPMD_LIB_TRANSFORMS_OPTIMIZER_BODYPADDING_H

#include "dialects/Aten/AtenInterfaces.h"

namespace spmd {

/// What the elements of a chunk are that are in no segment: unknown may be NaN or infinite, the others are finite.
enum class Padding { zero, positive, negative, nonzero, finite, unknown };

/// Of `value` rounded to `type`.
Padding getPaddingOfNumber(double value, mlir::Type type);

/// Of the op's result, by its scalar body, for what the operands are. Values computed from constants are taken not to
/// overflow or vanish. Without `decides`, no comparison relies on what the operands are, as where that is an
/// assumption.
Padding getPaddingOfBody(aten::ScalarBodyOpInterface op, llvm::ArrayRef<Padding> operands, bool decides);

/// What the op's scalar body computes last is a sum or a difference.
bool isSumByBody(aten::ScalarBodyOpInterface op);

} // namespace spmd

#endif // SPMD_LIB_TRANSFORMS_OPTIMIZER_BODYPADDING_H
