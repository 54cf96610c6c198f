//===- Normalize.h - Captured calls as the normalised op set ----*- C++ -*-===//
//
// PyTorch says many things in several ways (t, transpose, permute; sum with and
// without dims; add.Tensor with a number). A normaliser turns one captured call
// into ops of the smaller set that the aten dialect has.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_NORMALIZE_H
#define SPMD_LIB_IMPORT_NORMALIZE_NORMALIZE_H

#include "../Emitter.h"

#include "llvm/ADT/StringMap.h"

namespace spmd {

using Results = llvm::SmallVectorImpl<mlir::Value>;
/// Emits the call and appends one value per result (null for an absent one).
/// Failure: an error was emitted.
using Normalizer = llvm::LogicalResult (*)(Emitter &, Call &, Results &);

/// How calls of an op are normalised.
struct Normalization {
  Normalizer run = nullptr;
  /// Tensor arguments that `run` may take for granted, as it may a first result (but for list ops): a package that
  /// lacks them gets an error before.
  llvm::SmallVector<llvm::StringRef, 2> tensors;
  /// Entries of the call's results that `run` reads, and whether they may be null (an output mask).
  unsigned results = 1;
  bool masksResults = false;

  Normalization() = default;
  Normalization(Normalizer run, llvm::ArrayRef<llvm::StringRef> tensors, unsigned results, bool masksResults = false)
      : run(run), tensors(tensors), results(results), masksResults(masksResults) {}
  Normalization(Normalizer run, llvm::ArrayRef<llvm::StringRef> tensors = {}) : run(run), tensors(tensors) {}
};
using NormalizerTable = llvm::StringMap<Normalization>;

/// Emits any call. The results have the call's result types.
llvm::LogicalResult emitCall(Emitter &emitter, Call &call, Results &results);

/// The call as the aten op of the same name.
llvm::LogicalResult emitSameOp(Emitter &emitter, Call &call, Results &results);

/// A call of an operator that is a function in a shared library.
llvm::LogicalResult emitCustomCall(Emitter &emitter, Call &call, const step::Operator &entry, Results &results);

/// Adds the normalizers of a family, in the file of the same name.
#define SPMD_NORMALIZERS(FAMILY) void normalize##FAMILY(NormalizerTable &table);
#include "lib/Import/Normalizers.inc"

/// True for a list op that the dialect does not have in list form; `known`: it has
/// a normalizer.
bool needsUnrolling(const Call &call, bool known, mlir::MLIRContext *context);
/// Such a list op as pointwise ops, one per position.
llvm::LogicalResult emitUnrolled(Emitter &emitter, Call &call, Results &results);

/// `dim` counted from the front.
int64_t wrapDim(int64_t dim, int64_t rank);
/// Sets the number (or absent number) that argument `name` is; an argument of
/// another kind stays, for the op to refuse.
void setInteger(Call &call, llvm::StringRef name, int64_t value);
void setBoolean(Call &call, llvm::StringRef name, bool value);
void setIntegers(Call &call, llvm::StringRef name, llvm::ArrayRef<int64_t> values);
/// The integers of a list argument, or one integer.
llvm::SmallVector<int64_t> getIntegers(Call &call, llvm::StringRef name);
/// An error: the call names a dimension that a tensor does not have.
llvm::LogicalResult refuseDim(Emitter &emitter, Call &call, int64_t dim, int64_t rank);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_NORMALIZE_H
