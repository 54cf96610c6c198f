//===- RowWrites.h - What rows become that are written to -------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_NORMALIZE_ROWWRITES_H
#define SPMD_LIB_IMPORT_NORMALIZE_ROWWRITES_H

#include "RowAccess.h"

namespace spmd {

/// What an element becomes that is written to.
enum class Reduction { set, sum, prod, mean, amax, amin };

/// By the name that PyTorch has for it, where it is not `set`.
std::optional<Reduction> parseReduction(llvm::StringRef name);

/// `self` with `src` in the rows of `access`. Unless `includeSelf`, what `self` had there does not count.
mlir::FailureOr<mlir::Value> emitWrite(Emitter &emitter, const RowAccess &access, mlir::Value self, mlir::Value src,
                                       Reduction reduction, bool includeSelf, llvm::StringRef op);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_NORMALIZE_ROWWRITES_H
