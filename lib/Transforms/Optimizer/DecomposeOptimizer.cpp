//===- DecomposeOptimizer.cpp - spmd-decompose-optimizer ------------------===//

#include "Decompose.h"

#include "dialects/Aten/AtenOptim.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Optimizer/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringExtras.h"

namespace spmd {
#define GEN_PASS_DEF_DECOMPOSEOPTIMIZER
#include "spmd/Transforms/Optimizer/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct DecomposeOptimizer : FunctionPass<spmd::impl::DecomposeOptimizerBase<DecomposeOptimizer>> {
  using FunctionPass::FunctionPass;

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

  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &listener) override {
    SmallVector<Operation *> work;
    func.walk([&](Operation *op) {
      if (isa<aten::AtenOpInterface>(op))
        work.push_back(op);
    });
    for (Operation *op : work) {
      listener.setSource(op);
      rewriter.setInsertionPoint(op);
      if (failed(decompose(op, rewriter)))
        return failure();
    }
    clearPadding(func, rewriter, [&](Operation *op) { listener.setSource(op); });
    return success();
  }
};
} // namespace
