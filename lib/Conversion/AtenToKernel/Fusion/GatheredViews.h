//===- GatheredViews.h - where gathered parameters can be read --*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_GATHEREDVIEWS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_GATHEREDVIEWS_H

#include "Placement.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd::fusion {

/// The views of gathered parameters: each can be read until its buffer is released, then where it is gathered again.
class GatheredViews {
public:
  explicit GatheredViews(const Placement &placement);

  /// The node to read at `ordinal` instead of `node`: itself, or for a view of a gathered buffer that was released
  /// before, the same view of the buffer gathered again. Null when there is none.
  Node *getReadableAt(Node *node, int64_t ordinal) const;

private:
  /// A parameter's view of one gathered buffer: valid from `begin` (its unpack) to before `end` (the release).
  struct Window {
    int64_t begin, end;
    Node *view;
  };
  /// Each view with what it is a view of and the parameter's name.
  llvm::DenseMap<Node *, std::pair<mlir::Value, mlir::Attribute>> names;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, llvm::SmallVector<Window, 2>> windows;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_GATHEREDVIEWS_H
