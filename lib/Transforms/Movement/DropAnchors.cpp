//===- DropAnchors.cpp - places with names, when passes have used them ----===//
//
//   %1 = aten.anchor %0 {name = "router"}
//   %2 = aten.relu %1                        becomes   %2 = aten.relu %0
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "spmd/Transforms/FunctionPass.h"
#include "spmd/Transforms/Movement/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_DROPANCHORS
#include "spmd/Transforms/Movement/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct DropAnchorsPass : FunctionPass<spmd::impl::DropAnchorsBase<DropAnchorsPass>> {
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override {
    func.walk([](aten::AnchorOp anchor) {
      anchor.getResult().replaceAllUsesWith(anchor.getSelf());
      anchor.erase();
    });
    return success();
  }
};
} // namespace
