//===- WrapPolicy.cpp - which modules become shard units ------------------===//

#include "spmd/Transforms/Units/WrapPolicy.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace spmd {

FailureOr<WrapPolicy> WrapPolicy::parse(StringRef text, Location loc) {
  WrapPolicy policy;
  if (text == "none")
    return policy;
  if (text == "always") {
    policy.kind = Kind::always;
    return policy;
  }
  StringRef rest = text;
  if (rest.consume_front("class:")) {
    policy.kind = Kind::byClass;
    for (StringRef name : llvm::split(rest, ','))
      policy.classes.push_back(name.trim().str());
    if (!llvm::is_contained(policy.classes, ""))
      return policy;
  }
  if (rest.consume_front("size:")) {
    policy.kind = Kind::bySize;
    if (!rest.getAsInteger(10, policy.size) && policy.size > 0)
      return policy;
  }
  return emitError(loc) << "policy '" << text
                        << "' is not one of: none, always, class:A,B (class "
                           "names), size:N (elements, at least 1)";
}

static StringRef lastComponent(StringRef name) { return name.substr(name.rfind('.') + 1); }

static bool hasClass(TreeModuleOp module, StringRef name) {
  name = lastComponent(name);
  return lastComponent(module.getClassName()) == name ||
         llvm::any_of(module.getBases().getAsRange<StringAttr>(),
                      [&](StringAttr base) { return lastComponent(base.getValue()) == name; });
}

/// Containers are never called, so nothing could gather their parameters.
static bool isContainer(TreeModuleOp module) {
  StringRef name = lastComponent(module.getClassName());
  return name == "ModuleList" || name == "ModuleDict";
}

FailureOr<SmallVector<bool>> WrapPolicy::wrap(const ModuleTree &tree, ArrayRef<int64_t> elements, Location loc) const {
  SmallVector<bool> wrapped(tree.size(), false);
  if (kind == Kind::always)
    for (int64_t i = 0; i < tree.size(); ++i)
      wrapped[i] = elements[i] > 0;
  for (StringRef name : classes) {
    bool found = false;
    for (int64_t i = 0; i < tree.size(); ++i)
      if (hasClass(tree.get(i), name))
        wrapped[i] = found = true;
    if (found)
      continue;
    llvm::SetVector<StringRef> known;
    for (int64_t i = 0; i < tree.size(); ++i)
      known.insert(lastComponent(tree.get(i).getClassName()));
    InFlightDiagnostic diag = emitError(loc) << "no module has class '" << name << "'; the model's classes are: ";
    llvm::interleaveComma(known, diag);
    return diag;
  }
  if (kind == Kind::bySize) {
    SmallVector<int64_t> open(elements);
    for (int64_t i = tree.size() - 1; i > 0; --i) {
      wrapped[i] = open[i] >= size && !isContainer(tree.get(i));
      if (!wrapped[i] && tree.getParent(i) >= 0)
        open[tree.getParent(i)] += open[i];
    }
  }
  wrapped[0] = true;
  return wrapped;
}

} // namespace spmd
