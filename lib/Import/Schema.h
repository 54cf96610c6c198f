//===- Schema.h - Arguments of a PyTorch schema -----------------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_SCHEMA_H
#define SPMD_LIB_IMPORT_SCHEMA_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace spmd {

struct SchemaArg {
  llvm::StringRef type; ///< "Tensor?", "int[1]", "Scalar"; without alias marks
  llvm::StringRef name;

  bool isTensor() const { return type.starts_with("Tensor"); }
  bool isOptional() const { return type.ends_with("?"); }
};

/// The arguments of "aten::add.Tensor(Tensor self, ..., *, Scalar alpha=1) ->
/// Tensor", in order. Points into `schema`.
llvm::SmallVector<SchemaArg> parseSchemaArgs(llvm::StringRef schema);

} // namespace spmd

#endif // SPMD_LIB_IMPORT_SCHEMA_H
