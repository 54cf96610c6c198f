//===- SegmentListener.h - New ops inherit segment and location -*- C++ -*-===//

#ifndef SPMD_TRANSFORMS_SEGMENTLISTENER_H
#define SPMD_TRANSFORMS_SEGMENTLISTENER_H

#include "dialects/Spmd/Roles.h"
#include "mlir/IR/PatternMatch.h"

namespace spmd {

/// Gives each op that a rewrite inserts the segment of the op it is made for,
/// and that op's location where it has none of its own.
///
/// With a plain rewriter, say whom the next ops are made for by `setSource`;
/// drivers that announce the start of a pattern (the greedy one, through
/// `GreedyRewriteConfig::setListener`) do that themselves.
class SegmentListener : public mlir::RewriterBase::Listener {
public:
  void setSource(mlir::Operation *op) {
    segment = op->getAttr(kSegmentAttr);
    loc = op->getLoc();
  }

  void notifyPatternBegin(const mlir::Pattern &, mlir::Operation *op) override { setSource(op); }

  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override {
    if (previous.isSet()) // moved, not new
      return;
    if (segment && !op->hasAttr(kSegmentAttr))
      op->setAttr(kSegmentAttr, segment);
    if (loc && llvm::isa<mlir::UnknownLoc>(op->getLoc()))
      op->setLoc(*loc);
  }

private:
  mlir::Attribute segment;
  std::optional<mlir::Location> loc;
};

} // namespace spmd

#endif // SPMD_TRANSFORMS_SEGMENTLISTENER_H
