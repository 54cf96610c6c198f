//===- Schema.h - Arguments of a PyTorch schema -----------------*- C++ -*-===//
//
// The only reader of schemas in C++. A capture asks PyTorch for its own (`OpOverload._schema`).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_SCHEMA_H
#define SPMD_DIALECTS_ATEN_SCHEMA_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace spmd::aten {

struct SchemaArg {
  llvm::StringRef type; ///< "Tensor?", "Tensor(a)", "int[1]", "Scalar"
  llvm::StringRef name;

  bool isTensor() const { return type.starts_with("Tensor"); }
  bool isOptional() const { return type.ends_with("?"); }
  bool isList() const { return type.ends_with("]"); }
};

/// The arguments of "aten::add.Tensor(Tensor self, ..., *, Scalar alpha=1) ->
/// Tensor", in order. Points into `schema`.
llvm::SmallVector<SchemaArg> parseSchemaArgs(llvm::StringRef schema);

/// What it returns shares memory with an argument: "-> Tensor(a)".
bool returnsView(llvm::StringRef schema);

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_SCHEMA_H
