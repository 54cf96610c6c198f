//===- IntegerRange.h - Between which bounds integers lie -------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H
#define SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H

#include "dialects/Aten/IntegerRange.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd {

/// Bounds of computed integers, as far as the ops that compute them say by MLIR's InferIntRangeInterface
/// ([Note: integer ranges]). Values are asked for one by one, while a pass rewrites others.
class IntegerRanges {
public:
  /// Nothing when there are no bounds that rows can have, or the value is no integer.
  aten::KnownRange get(mlir::Value value);

private:
  mlir::IntegerValueRange infer(mlir::Value value);

  llvm::DenseMap<mlir::Value, mlir::IntegerValueRange> known;
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_PASSES_INTEGERRANGE_H
