//===- WrapPolicy.h - which modules become shard units ----------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_UNITS_WRAPPOLICY_H
#define SPMD_TRANSFORMS_UNITS_WRAPPOLICY_H

#include "spmd/Transforms/Units/ModuleTree.h"

namespace spmd {

/// none | always | class:A,B | size:N; see the pass description.
struct WrapPolicy {
  enum class Kind { none, always, byClass, bySize };

  Kind kind = Kind::none;
  llvm::SmallVector<std::string> classes;
  int64_t size = 0;

  /// Parses the text of the pass option; an error at `loc` that lists the allowed
  /// forms when it is none of them.
  static mlir::FailureOr<WrapPolicy> parse(llvm::StringRef text, mlir::Location loc);

  /// Marks the wrapped modules; the root always is. `elements[m]` is the number
  /// of parameter elements that module m itself owns. An error when a class name
  /// matches no module.
  mlir::FailureOr<llvm::SmallVector<bool>> wrap(const ModuleTree &tree, llvm::ArrayRef<int64_t> elements,
                                                mlir::Location loc) const;
};

} // namespace spmd

#endif // SPMD_TRANSFORMS_UNITS_WRAPPOLICY_H
