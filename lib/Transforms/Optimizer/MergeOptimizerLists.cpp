//===- MergeOptimizerLists.cpp - spmd-merge-optimizer-lists ---------------===//

#include "ListOp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Optimizer/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_MERGEOPTIMIZERLISTS
#include "spmd/Transforms/Optimizer/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct MergeOptimizerLists : FunctionPass<spmd::impl::MergeOptimizerListsBase<MergeOptimizerLists>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &) override {
    Block &body = func.getBody().front();
    // Lists first: where param groups have lists in another order, there is more to guess about which belong
    // together.
    mergeListOps(body, rewriter);
    mergeTensorOps(func, rewriter);
    mergeListOps(body, rewriter); // of maps
    mergeFusedOps(body, rewriter);
    completeListOps(body, rewriter);
    return success();
  }
};
} // namespace
