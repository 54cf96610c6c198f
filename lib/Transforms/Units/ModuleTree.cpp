//===- ModuleTree.cpp - the model's modules, ready to ask -----------------===//

#include "spmd/Transforms/Units/ModuleTree.h"

using namespace mlir;

namespace spmd {

FailureOr<ModuleTree> ModuleTree::read(ModuleOp module) {
  auto trees = module.getOps<ModuleTreeOp>();
  if (trees.empty() || (*trees.begin()).getBody().front().empty())
    return module.emitError("has no spmd.module_tree with modules");
  ModuleTree tree;
  llvm::StringMap<int64_t> numbers;
  for (auto entry : (*trees.begin()).getBody().getOps<TreeModuleOp>()) {
    numbers[entry.getPath()] = tree.entries.size();
    tree.entries.push_back(entry);
  }
  tree.parents.assign(tree.entries.size(), kNoParent);
  for (auto [number, entry] : llvm::enumerate(tree.entries))
    for (auto child : entry.getChildren().getAsRange<StringAttr>()) {
      int64_t childNumber = numbers.lookup(child.getValue());
      if (childNumber <= static_cast<int64_t>(number))
        return entry.emitError() << "module \"" << entry.getPath() << "\" comes after its child " << child
                                 << ", the tree must be in preorder";
      tree.parents[childNumber] = number;
    }
  return tree;
}

SmallVector<int64_t> ModuleTree::getOwners(ArrayRef<StringRef> names) const {
  SmallVector<int64_t> owners;
  for (auto [number, entry] : llvm::enumerate(entries))
    if (llvm::any_of(entry->getAttrOfType<ArrayAttr>("params"),
                     [&](Attribute a) { return llvm::is_contained(names, cast<StringAttr>(a).getValue()); }))
      owners.push_back(number);
  return owners;
}

int64_t ModuleTree::getCommonAncestor(ArrayRef<int64_t> modules) const {
  if (modules.empty())
    return 0;
  int64_t common = modules.front();
  // Preorder numbers a parent below its children: the larger one goes up.
  for (int64_t other : modules.drop_front())
    while (common != other) {
      int64_t &lower = common > other ? common : other;
      lower = std::max<int64_t>(parents[lower], 0);
    }
  return common;
}

} // namespace spmd
