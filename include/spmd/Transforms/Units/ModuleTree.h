//===- ModuleTree.h - the model's modules, ready to ask ---------*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_UNITS_MODULETREE_H
#define SPMD_TRANSFORMS_UNITS_MODULETREE_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd {

/// The `spmd.module_tree` of a step with parents and owners of parameters.
/// Modules are numbered in preorder; 0 is the root.
class ModuleTree {
public:
  static constexpr int64_t kNoParent = -1;

  /// Reads the tree; an error on the module when there is none, or an empty one.
  static mlir::FailureOr<ModuleTree> read(mlir::ModuleOp module);

  int64_t size() const { return entries.size(); }
  TreeModuleOp get(int64_t index) const { return entries[index]; }
  int64_t getParent(int64_t index) const { return parents[index]; }

  /// Modules that list the parameter under one of `names`.
  llvm::SmallVector<int64_t> getOwners(llvm::ArrayRef<llvm::StringRef> names) const;

  /// Innermost module that contains all of `modules` (0 for none).
  int64_t getCommonAncestor(llvm::ArrayRef<int64_t> modules) const;

private:
  llvm::SmallVector<TreeModuleOp> entries;
  llvm::SmallVector<int64_t> parents;
};

} // namespace spmd

#endif // SPMD_TRANSFORMS_UNITS_MODULETREE_H
