//===- Normalize.h - Captured calls as the normalised op set ----*- C++ -*-===//
//
// PyTorch says many things in several ways (t, transpose, permute; sum with and
// without dims; add.Tensor with a number). A normaliser turns one captured call
// into ops of the smaller set that the aten dialect has.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_H
#define SPMD_LIB_IMPORT_NORMALIZE_H

#include "Emitter.h"

#include "llvm/ADT/StringMap.h"

namespace spmd {

using Results = llvm::SmallVectorImpl<mlir::Value>;
/// Emits the call and appends one value per result (null for an absent one).
/// Failure: an error was emitted.
using Normalizer = llvm::LogicalResult (*)(Emitter &, Call &, Results &);
using NormalizerTable = llvm::StringMap<Normalizer>;

/// Emits any call. The results have the call's result types.
llvm::LogicalResult emitCall(Emitter &emitter, Call &call, Results &results);

/// The call as the aten op of the same name.
llvm::LogicalResult emitSameOp(Emitter &emitter, Call &call, Results &results);

void addViewNormalizers(NormalizerTable &table);
void addFactoryNormalizers(NormalizerTable &table);
void addArithmeticNormalizers(NormalizerTable &table);
void addReductionNormalizers(NormalizerTable &table);
void addListNormalizers(NormalizerTable &table);

/// `dim` counted from the front.
int64_t wrapDim(int64_t dim, int64_t rank);
/// Sets the number (or absent number) that argument `name` is; an argument of
/// another kind stays, for the op to refuse.
void setInteger(Call &call, llvm::StringRef name, int64_t value);
void setIntegers(Call &call, llvm::StringRef name, llvm::ArrayRef<int64_t> values);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_H
