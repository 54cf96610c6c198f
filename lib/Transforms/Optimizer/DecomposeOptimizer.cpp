//===- DecomposeOptimizer.cpp - spmd-decompose-optimizer ------------------===//

#include "Decompose.h"

#include "dialects/Aten/AtenOptim.h"
#include "spmd/Transforms/Optimizer/Passes.h"
#include "spmd/Transforms/SegmentListener.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringExtras.h"

namespace spmd {
#define GEN_PASS_DEF_DECOMPOSEOPTIMIZER
#include "spmd/Transforms/Optimizer/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct DecomposeOptimizer : spmd::impl::DecomposeOptimizerBase<DecomposeOptimizer> {
  using DecomposeOptimizerBase::DecomposeOptimizerBase;

  LogicalResult initialize(MLIRContext *context) override {
    for (StringRef name : ops)
      if (!llvm::is_contained(getDecomposableGradients(), name))
        return emitError(UnknownLoc::get(context)) << "option 'ops' of spmd-decompose-optimizer: '" << name
                                                   << "' is none of " << llvm::join(getDecomposableGradients(), ", ");
    return success();
  }

  LogicalResult decompose(Operation *op, RewriterBase &rewriter) {
    if (isa<aten::FusedAdamOp, aten::FusedAdamwOp, aten::FusedSgdOp>(op))
      return decomposeFused(op, rewriter);
    if (auto list = dyn_cast<aten::ListOpInterface>(op))
      return decomposeForeach(list, rewriter);
    if (llvm::is_contained(ops, op->getName().stripDialect()))
      return decomposeGradient(op, rewriter);
    return success();
  }

  void runOnOperation() override {
    SegmentListener listener;
    IRRewriter rewriter(&getContext(), &listener);
    SmallVector<Operation *> work;
    getOperation().walk([&](Operation *op) {
      if (isa<aten::AtenOpInterface>(op))
        work.push_back(op);
    });
    for (Operation *op : work) {
      listener.setSource(op);
      rewriter.setInsertionPoint(op);
      if (failed(decompose(op, rewriter)))
        return signalPassFailure();
    }
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        clearPadding(func, rewriter, [&](Operation *op) { listener.setSource(op); });
  }
};
} // namespace
