//===- GatheredViews.cpp - where gathered parameters can be read ----------===//

#include "GatheredViews.h"

#include "../UnpackViews.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

GatheredViews::GatheredViews(const Placement &placement) {
  llvm::DenseMap<Node *, int64_t> releases;
  for (Node *anchor : placement.getAnchors())
    if (anchor->op && isa<ReleaseOp>(anchor->op))
      releases[anchor->inputs.front().node] = placement.getOrdinal(anchor);
  for (Node *anchor : placement.getAnchors()) {
    auto unpack = anchor->op ? dyn_cast<UnpackOp>(anchor->op) : UnpackOp();
    if (!unpack)
      continue;
    auto release = releases.find(anchor->inputs.front().node);
    int64_t end = release == releases.end() ? placement.getAnchors().size() : release->second;
    for (auto [name, view] : llvm::zip_equal(unpack.getNames(), anchor->results)) {
      std::pair<Value, Attribute> key(getUnpacked(unpack), name);
      windows[key].push_back({placement.getOrdinal(anchor), end, view});
      names[view] = key;
    }
  }
}

Node *GatheredViews::getReadableAt(Node *node, int64_t ordinal) const {
  auto name = names.find(node);
  if (name == names.end())
    return node;
  for (const Window &window : windows.find(name->second)->second)
    if (window.begin <= ordinal && ordinal < window.end)
      return window.view;
  return nullptr;
}

} // namespace spmd::fusion
