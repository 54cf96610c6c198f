//===- AtenInterfaces.h - What every aten op says of itself -----*- C++ -*-===//
//
// All that most passes need of the aten dialect: they work on AtenOpInterface
// and never name an op.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_ATENINTERFACES_H
#define SPMD_DIALECTS_ATEN_ATENINTERFACES_H

#include "dialects/Aten/IntegerRange.h"
#include "dialects/Aten/Pieces.h"
#include "dialects/Aten/RowNumbers.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Aten/ShardingRule.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace mlir {
class ImplicitLocOpBuilder;
} // namespace mlir

#include "dialects/Aten/AtenInterfaces.h.inc"

#endif // SPMD_DIALECTS_ATEN_ATENINTERFACES_H
